# from tvm.script import tirx as T

@T.prim_func
def relu_packed(x: T.Buffer((1, 14, 14, 70), "float32"), y: T.Buffer((1, 18, 14, 14, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    for co, h, w in T.grid(18, 14, 14):
        for ci in T.vectorized(4):
            y[0, co, h, w, ci] = T.if_then_else(4 * co + ci < 70, T.max(x[0, h, w, 4 * co + ci], T.float32(0)), T.float32(0))
