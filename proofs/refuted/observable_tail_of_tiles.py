# about: tiles of four do not reach the last elements where the size is no multiple
# clause: observable
# expect: refuted
# theta: 0 -> 0: lambda io, ii: [4*io + ii]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    for i in range(n):
        B[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    for io, ii in T.grid(n // 4, 4):
        B[4 * io + ii] = A[4 * io + ii]
