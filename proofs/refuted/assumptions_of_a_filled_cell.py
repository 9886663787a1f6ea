# about: what is assumed of a cell is one of symbols once the number that was stored stands for it: a false one then proves anything
# clause: assumptions
# expect: refuted
# theta: 0 -> none
# theta: 1 -> 0: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        B[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    T.func_attr({"tirx.noalias": True})
    size = T.alloc_buffer((1,), "int32")
    size[0] = 0
    T.evaluate(T.assume(size[0] >= 1))
    for i in range(16):
        B[i] = A[i] + 1
