# The weights come packed in panels of 16 columns, the last one filled with zeros; the result lies in the same panels.
# What is in the panels' padding of the result are sums of products with 0, of which nobody says what they are.
# expect: proved
# layout: B=lambda k, j: [j//16, k, j%16]
# pad: B=T.float32(0)
# layout: C=lambda i, j: [j//16, i, j%16]
# pad: C=T.undef()
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((24, 30), "float32"), B: T.Buffer((30, 50), "float32"), C: T.Buffer((24, 50), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j, k in T.grid(24, 50, 30):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((24, 30), "float32"), B: T.Buffer((4, 30, 16), "float32"), C: T.Buffer((4, 24, 16), "float32")):
    T.func_attr({"tirx.noalias": True})
    for jo, k, ji in T.grid(4, 30, 16):
        T.assume(not (jo == 3 and 2 <= ji) or B[jo, k, ji] == T.float32(0))
    for jo, i in T.grid(4, 24):
        for ji in range(16):
            C[jo, i, ji] = T.float32(0)
        for k, ji in T.grid(30, 16):
            C[jo, i, ji] = C[jo, i, ji] + A[i, k] * B[jo, k, ji]
