# about: the same as the document has it, with `+ 2` in the definition
# expect: refuted
# theta: 0 -> 0: lambda Bi: [Bi]
# theta: 1 -> 1: lambda io, ii, fi: [8*io + ii + fi - 4, fi] where 0 <= 8*io + ii - 2 and 8*io + ii - 2 < 16 and 0 <= 8*io + ii + fi - 4 and 8*io + ii + fi - 4 < 18
# theta: 2 -> 2: lambda p, q: [p, q]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((3, 8), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((3, 8), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [16], "steps": [{"index_map": "lambda i: [(i + 2)//8, (i + 2)%8]", "shape": [3, 8], "contract": "T.float32(0.0)"}]}, "B_data": {"logical_shape": [18], "steps": [{"index_map": "lambda i: [(i + 2)//8, (i + 2)%8]", "shape": [3, 8], "contract": "T.float32(0.0)"}]}}})
    for p, q in T.grid(3, 8):
        T.evaluate(T.assume((p == 0 and q >= 2) or p == 1 or (p == 2 and q < 2) or A[p, q] == T.float32(0)))
    for Bi in range(18):
        B[(Bi + 2) // 8, (Bi + 2) % 8] = T.float32(0)
        for fi in range(3):
            if 0 <= Bi - fi + 2 and Bi - fi + 2 < 16:
                B[(Bi + 2) // 8, (Bi + 2) % 8] = B[(Bi + 2) // 8, (Bi + 2) % 8] + F[fi] * A[(Bi - fi + 2 + 2) // 8, (Bi - fi + 2 + 2) % 8]
    for p, q in T.grid(3, 8):
        if (p == 0 and q < 2) or (p == 2 and q >= 4):
            B[p, q] = T.float32(0)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((3, 8), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((3, 8), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [16], "steps": [{"index_map": "lambda i: [(i + 2)//8, (i + 2)%8]", "shape": [3, 8], "contract": "T.float32(0.0)"}]}, "B_data": {"logical_shape": [18], "steps": [{"index_map": "lambda i: [(i + 2)//8, (i + 2)%8]", "shape": [3, 8], "contract": "T.float32(0.0)"}]}}})
    for p, q in T.grid(3, 8):
        T.evaluate(T.assume((p == 0 and q >= 2) or p == 1 or (p == 2 and q < 2) or A[p, q] == T.float32(0)))
    for Bi in range(18):
        B[(Bi + 2) // 8, (Bi + 2) % 8] = T.float32(0)
    for io, ii in T.grid(3, 8):
        for fi in range(3):
            B[(io + (ii + fi) // 8) % 3, (ii + fi) % 8] = B[(io + (ii + fi) // 8) % 3, (ii + fi) % 8] + F[fi] * A[io, ii]
    for p, q in T.grid(3, 8):
        if (p == 0 and q < 2) or (p == 2 and q >= 4):
            B[p, q] = T.float32(0)
