# A product over symbols with a packed and padded factor and a row of registers.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer(("n", 16), "float32"), B: T.Buffer((16, "m"), "float32"), C: T.Buffer((n, m), "float32")):
    T.func_attr({"tirx.noalias": True})
    n, m = T.int32(), T.int32()
    for i, j, k in T.grid(n, m, 16):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func(s_tir=True)
def after(A: T.Buffer(("n", 16), "float32"), B: T.Buffer((16, "m"), "float32"), C: T.Buffer((n, m), "float32")):
    T.func_attr({"tirx.noalias": True})
    n, m = T.int32(), T.int32()
    P = T.alloc_buffer(((m + 7) // 8, 16, 8), "float32")
    acc = T.alloc_buffer((8,), "float32", scope="local")
    for jo, k, ji in T.grid((m + 7) // 8, 16, 8):
        P[jo, k, ji] = T.if_then_else(jo*8 + ji < m, B[k, jo*8 + ji], T.float32(0))
    for i, jo in T.grid(n, (m + 7) // 8):
        for ji in range(8):
            acc[ji] = T.float32(0)
        for k in range(16):
            for ji in range(8):
                acc[ji] = acc[ji] + A[i, k] * P[jo, k, ji]
        for ji in range(8):
            if jo*8 + ji < m:
                C[i, jo*8 + ji] = acc[ji]
