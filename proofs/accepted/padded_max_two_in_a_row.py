# about: two padded iterations in a row, the second of which finds what the first one stored
# expect: proved
# functions: main, main
# theta: 0 -> none
# theta: 1 -> none
# theta: 2 -> 0: lambda ax0, k1: [ax0, k1]
# theta: 3 -> 1: lambda ax0, k1: [ax0, k1] where k1 < 14
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 14), "float32"), A_red: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for ax0, k1 in T.grid(16, 14):
        with T.sblock("A_red"):
            v_ax0, v_k1 = T.axis.remap("SR", [ax0, k1])
            T.reads(A[v_ax0, v_k1])
            T.writes(A_red[v_ax0])
            with T.init():
                A_red[v_ax0] = T.float32(-3.4028234663852886e+38)
            A_red[v_ax0] = T.max(A_red[v_ax0], A[v_ax0, v_k1])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 14), "float32"), A_red: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    A_pad = T.sblock_alloc_buffer((16, 16))
    for ax0_1, ax1 in T.grid(16, 16):
        with T.sblock("A_pad"):
            v0, v1 = T.axis.remap("SS", [ax0_1, ax1])
            T.reads(A[v0, v1])
            T.writes(A_pad[v0, v1])
            if v1 < 14:
                A_pad[v0, v1] = A[v0, v1]
            else:
                A_pad[v0, v1] = T.float32("-inf")
    for ax0, k1 in T.grid(16, 16):
        with T.sblock("A_red"):
            v_ax0, v_k1 = T.axis.remap("SR", [ax0, k1])
            T.reads(A_pad[v_ax0, v_k1])
            T.writes(A_red[v_ax0])
            with T.init():
                A_red[v_ax0] = T.float32(-3.4028234663852886e+38)
            A_red[v_ax0] = T.max(A_red[v_ax0], A_pad[v_ax0, v_k1])
