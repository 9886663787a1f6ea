# about: what is assumed of a value that the new program no longer stores is kept, and speaks of an older value then
# clause: assumptions
# expect: refuted
# theta: 0 -> 0: lambda i: [i]
# theta: 1 -> 2: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    C = T.alloc_buffer((8,), "float32")
    for i in range(8):
        C[i] = A[i]
    for i in range(8):
        C[i] = T.float32(0.0)
    for i in range(8):
        T.evaluate(T.assume(C[i] == T.float32(0.0)))
    for i in range(8):
        B[i] = T.float32(0.0)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    C = T.alloc_buffer((8,), "float32")
    for i in range(8):
        C[i] = A[i]
    for i in range(8):
        T.evaluate(T.assume(C[i] == T.float32(0.0)))
    for i in range(8):
        B[i] = C[i]
