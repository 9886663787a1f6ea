# about: an index that goes through a float rounds up where the other one rounds down
# clause: values
# expect: refuted
# theta: 0 -> 0: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((40,), "float32"), B: T.Buffer((79,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(79):
        B[i] = A[i // 2]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((40,), "float32"), B: T.Buffer((79,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(79):
        B[i] = A[T.Cast("int32", T.ceil(T.Cast("float32", i) * T.float32(0.5)))]
