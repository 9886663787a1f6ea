# about: of two elements that nothing else computes one ends with the other zero, which is told
# expect: proved
# strictness: nsz
# theta: 0 -> none
# theta: 1 -> none
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(B: T.Buffer((2,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(2):
        B[i] = T.float32(0)


@T.prim_func(s_tir=True)
def after(B: T.Buffer((2,), "float32")):
    T.func_attr({"tirx.noalias": True})
    B[0] = T.float32(0)
    B[1] = T.float32(-0.0)
