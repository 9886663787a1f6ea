# about: NCHW4c with any number of rows, its inner channels seen as vectors of 4
# expect: proved
# functions: main, main
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((2, "n", 4), "float32"), B: T.Buffer((2, n, 4), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": ["n", 8], "steps": [{"index_map": "lambda i, j: [j//4, i, j%4]", "shape": [2, "n", 4], "contract": None}]}, "C_data": {"logical_shape": ["n", 8], "steps": [{"index_map": "lambda i, j: [j//4, i, j%4]", "shape": [2, "n", 4], "contract": None}]}, "B_data": {"logical_shape": ["n", 8], "steps": [{"index_map": "lambda i, j: [j//4, i, j%4]", "shape": [2, "n", 4], "contract": None}]}}})
    A_flat = T.decl_buffer((T.Cast("int64", n) * T.int64(8),), "float32", data=A.data)
    B_flat = T.decl_buffer((T.Cast("int64", n) * T.int64(8),), "float32", data=B.data)
    C = T.alloc_buffer((T.Cast("int64", n) * T.int64(8),), "float32")
    for i, j_0 in T.grid(n, 2):
        C[T.Ramp(T.Cast("int64", j_0) * (T.Cast("int64", n) * T.int64(4)) + T.Cast("int64", i) * T.int64(4), T.int64(1), 4)] = A_flat[T.Ramp(T.Cast("int64", j_0) * (T.Cast("int64", n) * T.int64(4)) + T.Cast("int64", i) * T.int64(4), T.int64(1), 4)] * T.Broadcast(T.float32(2.0), 4)
    for i, j_0_1 in T.grid(n, 2):
        B_flat[T.Ramp(T.Cast("int64", j_0_1) * (T.Cast("int64", n) * T.int64(4)) + T.Cast("int64", i) * T.int64(4), T.int64(1), 4)] = C[T.Ramp(T.Cast("int64", j_0_1) * (T.Cast("int64", n) * T.int64(4)) + T.Cast("int64", i) * T.int64(4), T.int64(1), 4)] + A_flat[T.Ramp(T.Cast("int64", j_0_1) * (T.Cast("int64", n) * T.int64(4)) + T.Cast("int64", i) * T.int64(4), T.int64(1), 4)]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((2, "n", 4), "float32"), B: T.Buffer((2, n, 4), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"A_data": {"logical_shape": ["n", 8], "steps": [{"index_map": "lambda i, j: [j//4, i, j%4]", "shape": [2, "n", 4], "contract": None}]}, "C_data": {"logical_shape": ["n", 8], "steps": [{"index_map": "lambda i, j: [j//4, i, j%4]", "shape": [2, "n", 4], "contract": None}]}, "B_data": {"logical_shape": ["n", 8], "steps": [{"index_map": "lambda i, j: [j//4, i, j%4]", "shape": [2, "n", 4], "contract": None}]}}})
    A_flat_x4 = T.decl_buffer((T.Cast("int64", n) * T.int64(2),), "float32x4", data=A.data)
    B_flat_x4 = T.decl_buffer((T.Cast("int64", n) * T.int64(2),), "float32x4", data=B.data)
    C = T.alloc_buffer((T.Cast("int64", n) * T.int64(8),), "float32")
    C_x4 = T.decl_buffer((T.Cast("int64", n) * T.int64(2),), "float32x4", data=C.data)
    for i, j_0 in T.grid(n, 2):
        C_x4[T.Cast("int64", i) + T.Cast("int64", j_0) * T.Cast("int64", n)] = A_flat_x4[T.Cast("int64", i) + T.Cast("int64", j_0) * T.Cast("int64", n)] * T.Broadcast(T.float32(2.0), 4)
    for i, j_0_1 in T.grid(n, 2):
        B_flat_x4[T.Cast("int64", i) + T.Cast("int64", j_0_1) * T.Cast("int64", n)] = C_x4[T.Cast("int64", i) + T.Cast("int64", j_0_1) * T.Cast("int64", n)] + A_flat_x4[T.Cast("int64", i) + T.Cast("int64", j_0_1) * T.Cast("int64", n)]
