# about: two buffers of 24 channels in blocks of 16 are concatenated block by block, padding and all
# expect: refuted
# theta: 0 -> 0: lambda c: [c]
# theta: 1 -> 1: lambda c: [c]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((2, 16), "float32"), D: T.Buffer((2, 16), "float32"), B: T.Buffer((3, 16), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [24], "steps": [{"index_map": "lambda c: [c//16, c%16]", "shape": [2, 16], "contract": "T.float32(0.0)"}]}, "D_data": {"logical_shape": [24], "steps": [{"index_map": "lambda c: [c//16, c%16]", "shape": [2, 16], "contract": "T.float32(0.0)"}]}}})
    for c in range(24):
        B[c // 16, c % 16] = A[c // 16, c % 16]
    for c in range(24):
        B[(c + 24) // 16, (c + 24) % 16] = D[c // 16, c % 16]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((2, 16), "float32"), D: T.Buffer((2, 16), "float32"), B: T.Buffer((3, 16), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [24], "steps": [{"index_map": "lambda c: [c//16, c%16]", "shape": [2, 16], "contract": "T.float32(0.0)"}]}, "D_data": {"logical_shape": [24], "steps": [{"index_map": "lambda c: [c//16, c%16]", "shape": [2, 16], "contract": "T.float32(0.0)"}]}}})
    for c in range(24):
        B[c // 16, c % 16] = A[c // 16, c % 16]
    for c in range(16):
        B[2, c] = D[0, c]
