# Each element is the sum of those before it: a recursion along the rows, whose columns may run in any order.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(15, 8):
        A[i + 1, j] = A[i, j] + A[i + 1, j]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for j in range(8):
        for i in range(1, 16):
            A[i, j] = A[i - 1, j] + A[i, j]
