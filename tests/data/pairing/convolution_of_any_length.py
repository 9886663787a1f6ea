# A convolution over a symbol, by tiles of eight with a guard.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(C: T.Buffer(("n",), "float32"), W: T.Buffer((3,), "float32"), A: T.Buffer((n + 2,), "float32")):
    T.func_attr({"tirx.noalias": True})
    n = T.int32()
    for i, k in T.grid(n, 3):
        with T.sblock("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi + vk] * W[vk]


@T.prim_func(s_tir=True)
def after(C: T.Buffer(("n",), "float32"), W: T.Buffer((3,), "float32"), A: T.Buffer((n + 2,), "float32")):
    T.func_attr({"tirx.noalias": True})
    n = T.int32()
    w = T.alloc_buffer((3,), "float32", scope="local")
    acc = T.alloc_buffer((8,), "float32", scope="local")
    for k in range(3):
        w[k] = W[k]
    for io in range((n + 7) // 8):
        for ii in range(8):
            acc[ii] = T.float32(0)
        for k in range(3):
            for ii in range(8):
                if io * 8 + ii < n:
                    acc[ii] = acc[ii] + w[k] * A[io * 8 + ii + k]
        for ii in range(8):
            if io * 8 + ii < n:
                C[io * 8 + ii] = acc[ii]
