# about: padding whose contract is undef is read in vectors
# expect: proved
# functions: main, main
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4, 3, 4), "float32"), B: T.Buffer((4, 3, 4), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [3, 14], "steps": [{"index_map": "lambda i, j: [j//4, i, j%4]", "shape": [4, 3, 4], "contract": "undef"}]}, "C_data": {"logical_shape": [3, 14], "steps": [{"index_map": "lambda i, j: [j//4, i, j%4]", "shape": [4, 3, 4], "contract": "undef"}]}, "B_data": {"logical_shape": [3, 14], "steps": [{"index_map": "lambda i, j: [j//4, i, j%4]", "shape": [4, 3, 4], "contract": "undef"}]}}})
    A_flat = T.decl_buffer((48,), "float32", data=A.data)
    B_flat = T.decl_buffer((48,), "float32", data=B.data)
    C = T.alloc_buffer((48,), "float32")
    for p0, p1, p2 in T.grid(4, 3, 4):
        T.assume(not (p0 == 3 and p2 >= 2) or A_flat[p1 * 4 + p2 + 36] == T.undef(dtype="float32"))
    for i, j_0 in T.grid(3, 4):
        C[T.Ramp(j_0 * 12 + i * 4, 1, 4)] = A_flat[T.Ramp(j_0 * 12 + i * 4, 1, 4)] * T.Broadcast(T.float32(2.0), 4)
    for p0_1, p1_1, p2_1 in T.grid(4, 3, 4):
        if p0_1 == 3 and p2_1 >= 2:
            C[p1_1 * 4 + p2_1 + 36] = T.undef(dtype="float32")
    for i, j_0_1 in T.grid(3, 4):
        B_flat[T.Ramp(j_0_1 * 12 + i * 4, 1, 4)] = C[T.Ramp(j_0_1 * 12 + i * 4, 1, 4)] + A_flat[T.Ramp(j_0_1 * 12 + i * 4, 1, 4)]
    for p0_2, p1_2, p2_2 in T.grid(4, 3, 4):
        if p0_2 == 3 and p2_2 >= 2:
            B_flat[p1_2 * 4 + p2_2 + 36] = T.undef(dtype="float32")


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4, 3, 4), "float32"), B: T.Buffer((4, 3, 4), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": [3, 14], "steps": [{"index_map": "lambda i, j: [j//4, i, j%4]", "shape": [4, 3, 4], "contract": "undef"}]}, "C_data": {"logical_shape": [3, 14], "steps": [{"index_map": "lambda i, j: [j//4, i, j%4]", "shape": [4, 3, 4], "contract": "undef"}]}, "B_data": {"logical_shape": [3, 14], "steps": [{"index_map": "lambda i, j: [j//4, i, j%4]", "shape": [4, 3, 4], "contract": "undef"}]}}})
    A_flat = T.decl_buffer((48,), "float32", data=A.data)
    A_flat_x4 = T.decl_buffer((12,), "float32x4", data=A.data)
    B_flat = T.decl_buffer((48,), "float32", data=B.data)
    B_flat_x4 = T.decl_buffer((12,), "float32x4", data=B.data)
    C = T.alloc_buffer((48,), "float32")
    C_x4 = T.decl_buffer((12,), "float32x4", data=C.data)
    for p0, p1, p2 in T.grid(4, 3, 4):
        T.assume(not (p0 == 3 and p2 >= 2) or A_flat[p1 * 4 + p2 + 36] == T.undef(dtype="float32"))
    for i, j_0 in T.grid(3, 4):
        C_x4[j_0 * 3 + i] = A_flat_x4[j_0 * 3 + i] * T.Broadcast(T.float32(2.0), 4)
    for p0_1, p1_1, p2_1 in T.grid(4, 3, 4):
        if p0_1 == 3 and p2_1 >= 2:
            C[p1_1 * 4 + p2_1 + 36] = T.undef(dtype="float32")
    for i, j_0_1 in T.grid(3, 4):
        B_flat_x4[j_0_1 * 3 + i] = C_x4[j_0_1 * 3 + i] + A_flat_x4[j_0_1 * 3 + i]
    for p0_2, p1_2, p2_2 in T.grid(4, 3, 4):
        if p0_2 == 3 and p2_2 >= 2:
            B_flat[p1_2 * 4 + p2_2 + 36] = T.undef(dtype="float32")
