# about: whether a product on data wraps is asked of a let, and would be asked of integers in the index that uses it
# clause: values
# expect: refuted
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((2,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        x: T.bool = A[i] * 2 < 0
        B[i] = C[T.Select(x, 1, 0)]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((2,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = C[T.Select(A[i] < 0, 1, 0)]
