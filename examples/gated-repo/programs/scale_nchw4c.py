# from tvm.script import tirx as T
# What the team's own generator makes of scale.py: blocks of four channels, the last of which is half padding.

@T.prim_func(s_tir=True)
def scale_nchw4c(A: T.Buffer((2, 3, 8, 8, 4), "float32"), S: T.Buffer((10,), "float32"), B: T.Buffer((2, 3, 8, 8, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    for n_co in T.parallel(6):
        for h, w in T.grid(8, 8):
            for ci in T.vectorized(4):
                if n_co % 3 * 4 + ci < 10:
                    B[n_co // 3, n_co % 3, h, w, ci] = S[n_co % 3 * 4 + ci] * A[n_co // 3, n_co % 3, h, w, ci]
