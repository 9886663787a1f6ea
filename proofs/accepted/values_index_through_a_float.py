# about: an index that goes through a float is index arithmetic, as every value of it shows
# expect: proved
# strictness: ieee
# theta: 0 -> 0: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((40,), "float32"), B: T.Buffer((80,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(80):
        B[i] = A[T.max((i - 1) // 2, 0)]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((40,), "float32"), B: T.Buffer((80,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(80):
        B[i] = A[T.max(T.Cast("int32", T.floor((T.Cast("float32", i) + T.float32(0.5)) * T.float32(0.5) - T.float32(0.5))), 0)]
