# A block over 16 elements re-laid by `(i + 1)//8, (i + 1) % 8` runs 24 times: before the first element, and behind the last.
# expect: refuted
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        B[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for a, b in T.grid(3, 8):
        B[a*8 + b - 1] = A[a*8 + b - 1]
