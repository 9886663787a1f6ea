# about: a name for an element is 0.0 or -0.0, by IEEE arithmetic; that the element itself is 0.0 is another assumption
# clause: assumptions
# strictness: ieee
# expect: refuted
# theta: 0 -> 0: lambda i: [7 - i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        x: T.let[T.float32] = A[i]
        T.evaluate(T.assume(x == T.float32(0.0)))
        B[i] = T.float32(1.0) / A[i]

@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        T.evaluate(T.assume(A[7 - i] == T.float32(0.0)))
        B[7 - i] = T.float32(1.0) / A[7 - i]
