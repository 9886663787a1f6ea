# about: a call out of the program gets another argument
# clause: opaque
# expect: unknown
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(4):
        T.evaluate(T.call_extern("int32", "note", i))
        B[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(4):
        T.evaluate(T.call_extern("int32", "note", 3 - i))
        B[i] = A[i]
