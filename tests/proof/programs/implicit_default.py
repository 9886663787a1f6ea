# about: the roadmap's implicit default, its guard removed and the row wrapped
# expect: proved
# strictness: nnan ninf
# theta: 0 -> 0: lambda io, ii: [io, ii]
# theta: 1 -> 1: lambda io, ii, fi: [io, ii, fi] where 0 <= 8 * io + ii - 2 and 8 * io + ii - 2 < 16 and 0 <= 8 * io + ii + fi - 2 and 8 * io + ii + fi - 2 < 18
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((3, 8), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((3, 8), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [16], "steps": [{"index_map": "lambda i: [(i + 2)//8, (i + 2)%8]", "shape": [3, 8], "contract": "T.float32(0.0)"}]}, "B_data": {"logical_shape": [18], "steps": [{"index_map": "lambda i: [(i + 2)//8, (i + 2)%8]", "shape": [3, 8], "contract": "T.float32(0.0)"}]}}})
    for p, q in T.grid(3, 8):
        T.evaluate(T.assume((p == 0 and q >= 2) or p == 1 or (p == 2 and q < 2) or A[p, q] == T.float32(0)))
    for io, ii in T.grid(3, 8):
        B[io, ii] = T.float32(0)
    for io, ii in T.grid(3, 8):
        for fi in range(3):
            if 0 <= 8 * io + ii - 2 and 8 * io + ii - 2 < 16 and 0 <= 8 * io + ii + fi - 2 and 8 * io + ii + fi - 2 < 18:
                B[io + (ii + fi) // 8, (ii + fi) % 8] = B[io + (ii + fi) // 8, (ii + fi) % 8] + F[fi] * A[io, ii]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((3, 8), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((3, 8), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [16], "steps": [{"index_map": "lambda i: [(i + 2)//8, (i + 2)%8]", "shape": [3, 8], "contract": "T.float32(0.0)"}]}, "B_data": {"logical_shape": [18], "steps": [{"index_map": "lambda i: [(i + 2)//8, (i + 2)%8]", "shape": [3, 8], "contract": "T.float32(0.0)"}]}}})
    for p, q in T.grid(3, 8):
        T.evaluate(T.assume((p == 0 and q >= 2) or p == 1 or (p == 2 and q < 2) or A[p, q] == T.float32(0)))
    for io, ii in T.grid(3, 8):
        B[io, ii] = T.float32(0)
    for io, ii in T.grid(3, 8):
        for fi in range(3):
            B[(io + (ii + fi) // 8) % 3, (ii + fi) % 8] = B[(io + (ii + fi) // 8) % 3, (ii + fi) % 8] + F[fi] * A[io, ii]
