# from tvm.script import tirx as T

@T.prim_func
def relu(A: T.Buffer((1, 14, 14, 70), "float32"), B: T.Buffer((1, 14, 14, 70), "float32")):
    T.func_attr({"tirx.noalias": True})
    for n, h, w, c in T.grid(1, 14, 14, 70):
        with T.sblock("relu"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            B[vn, vh, vw, vc] = T.max(A[vn, vh, vw, vc], T.float32(0))
