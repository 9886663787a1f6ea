# about: the roadmap's convolution with its branch removed reads past the end of the input
# expect: refuted
# theta: 0 -> 0: lambda io, ii: [io, ii] where 4*io + ii < 14
# theta: 1 -> 1: lambda io, ii, f: [io, ii, f] where 4*io + ii < 14
# theta: 2 -> 2: lambda io, ii: [io, ii]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4, 4), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((4, 4), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [16], "steps": [{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": None}]}, "B_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": "undef"}]}}})
    for io, ii in T.grid(4, 4):
        if 4 * io + ii < 14:
            B[io, ii] = T.float32(0)
            for f in range(3):
                B[io, ii] = B[io, ii] + A[io + (ii + f) // 4, (ii + f) % 4] * F[f]
    for io, ii in T.grid(4, 4):
        if io == 3 and ii >= 2:
            B[io, ii] = T.undef(dtype="float32")


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4, 4), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((4, 4), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [16], "steps": [{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": None}]}, "B_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": "undef"}]}}})
    for io, ii in T.grid(4, 4):
        B[io, ii] = T.float32(0)
        for f in range(3):
            B[io, ii] = B[io, ii] + A[io + (ii + f) // 4, (ii + f) % 4] * F[f]
    for io, ii in T.grid(4, 4):
        if io == 3 and ii >= 2:
            B[io, ii] = T.undef(dtype="float32")
