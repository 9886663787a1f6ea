# Both inputs are packed into panels of 16 with zeros behind the last rows, tiles are summed in registers, and copied out as far as the result goes.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((100, 70), "float32"), B: T.Buffer((70, 50), "float32"), C: T.Buffer((100, 50), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j, k in T.grid(100, 50, 70):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((100, 70), "float32"), B: T.Buffer((70, 50), "float32"), C: T.Buffer((100, 50), "float32")):
    T.func_attr({"tirx.noalias": True})
    Ap = T.alloc_buffer((7, 70, 16), "float32")
    Bp = T.alloc_buffer((4, 70, 16), "float32")
    Cl = T.alloc_buffer((16, 16), "float32", scope="local")
    for io, k, ii in T.grid(7, 70, 16):
        Ap[io, k, ii] = T.if_then_else(io*16 + ii < 100, A[io*16 + ii, k], T.float32(0))
    for jo, k, ji in T.grid(4, 70, 16):
        if jo*16 + ji < 50:
            Bp[jo, k, ji] = B[k, jo*16 + ji]
        else:
            Bp[jo, k, ji] = T.float32(0)
    for io, jo in T.grid(7, 4):
        for ii, ji in T.grid(16, 16):
            Cl[ii, ji] = T.float32(0)
        for k, ii, ji in T.grid(70, 16, 16):
            Cl[ii, ji] = Cl[ii, ji] + Ap[io, k, ii] * Bp[jo, k, ji]
        for ii, ji in T.grid(16, 16):
            if io*16 + ii < 100 and jo*16 + ji < 50:
                C[io*16 + ii, jo*16 + ji] = Cl[ii, ji]
