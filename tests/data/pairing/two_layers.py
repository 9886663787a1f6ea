# Two layers with what lies between them packed, then transposed.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(X: T.Buffer((8, 16), "float32"), W: T.Buffer((16, 12), "float32"), V: T.Buffer((12, 8), "float32"), Y: T.Buffer((8, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    H = T.alloc_buffer((8, 12), "float32")
    R = T.alloc_buffer((8, 12), "float32")
    for i, j, k in T.grid(8, 12, 16):
        with T.sblock("H"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                H[vi, vj] = T.float32(0)
            H[vi, vj] = H[vi, vj] + X[vi, vk] * W[vk, vj]
    for i, j in T.grid(8, 12):
        R[i, j] = T.max(H[i, j], T.float32(0))
    for i, j, k in T.grid(8, 8, 12):
        with T.sblock("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = T.float32(0)
            Y[vi, vj] = Y[vi, vj] + R[vi, vk] * V[vk, vj]


@T.prim_func(s_tir=True)
def after(X: T.Buffer((8, 16), "float32"), W: T.Buffer((16, 12), "float32"), V: T.Buffer((12, 8), "float32"), Y: T.Buffer((8, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    H = T.alloc_buffer((3, 8, 4), "float32")
    R = T.alloc_buffer((12, 8), "float32")
    for jo, i, ji in T.grid(3, 8, 4):
        H[jo, i, ji] = T.float32(0)
    for k, jo, i, ji in T.grid(16, 3, 8, 4):
        H[jo, i, ji] = H[jo, i, ji] + X[i, k] * W[k, jo*4 + ji]
    for jo, ji, i in T.grid(3, 4, 8):
        R[jo*4 + ji, i] = T.max(H[jo, i, ji], T.float32(0))
    for i, j in T.grid(8, 8):
        Y[i, j] = T.float32(0)
    for ko, i, ki, j in T.grid(3, 8, 4, 8):
        Y[i, j] = Y[i, j] + V[ko*4 + ki, j] * R[ko*4 + ki, i]
