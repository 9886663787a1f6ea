# about: rows of an image are products of extents: two iterations of a parallel loop touch other rows
# expect: proved
# strictness: ieee
# functions: main, main
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer(("n", "h", "w", "c"), "float32"), B: T.Buffer((n, (c + 3) // 4, h, w, 4), "float32", scope="global.texture", axis_separators=[3])):
    n, h, w, c = T.int32(), T.int32(), T.int32(), T.int32()
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"B_data": {"logical_shape": ["n", "h", "w", "c"], "steps": [{"index_map": "lambda n, h, w, c: [n, c//4, h, AXIS_SEPARATOR, w, c%4]", "shape": ["n", "(c + 3)//4", "h", "w", 4], "contract": "T.float32(0.0)"}]}}, "buffer_axis_separators": {"B_data": [2]}})
    for i0 in T.parallel(n):
        for i1, i2, i3 in T.grid(h, w, c):
            B[i0, i3 // 4, i1, i2, i3 % 4] = A[i0, i1, i2, i3] + T.float32(1.0)
    for p0, p1, p2, p3, p4 in T.grid(n, (c + 3) // 4, h, w, 4):
        if 4 * p1 + p4 >= c:
            B[p0, p1, p2, p3, p4] = T.float32(0.0)


@T.prim_func(s_tir=True)
def after(A: T.Buffer(("n", "h", "w", "c"), "float32"), B: T.Buffer((n, (c + 3) // 4, h, w, 4), "float32", scope="global.texture", axis_separators=[3])):
    n, h, w, c = T.int32(), T.int32(), T.int32(), T.int32()
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"B_data": {"logical_shape": ["n", "h", "w", "c"], "steps": [{"index_map": "lambda n, h, w, c: [n, c//4, h, AXIS_SEPARATOR, w, c%4]", "shape": ["n", "(c + 3)//4", "h", "w", 4], "contract": "T.float32(0.0)"}]}}, "buffer_axis_separators": {"B_data": [0]}})
    A_flat = T.decl_buffer((T.Cast("int64", n) * T.Cast("int64", h) * T.Cast("int64", w) * T.Cast("int64", c),), "float32", data=A.data)
    B_flat = T.decl_buffer((T.Cast("int64", n) * T.Cast("int64", (c + 3) // 4) * T.Cast("int64", h), T.Cast("int64", w) * T.int64(4)), "float32", data=B.data, scope="global.texture", axis_separators=[1])
    for i0 in T.parallel(n):
        for i1, i2, i3 in T.grid(h, w, c):
            B_flat[T.Cast("int64", i0) * (T.Cast("int64", (c + 3) // 4) * T.Cast("int64", h)) + T.Cast("int64", i3 // 4) * T.Cast("int64", h) + T.Cast("int64", i1), T.Cast("int64", i2) * T.int64(4) + T.Cast("int64", i3 % 4)] = A_flat[T.Cast("int64", i0) * (T.Cast("int64", h) * T.Cast("int64", w) * T.Cast("int64", c)) + T.Cast("int64", i1) * (T.Cast("int64", w) * T.Cast("int64", c)) + T.Cast("int64", i2) * T.Cast("int64", c) + T.Cast("int64", i3)] + T.float32(1.0)
    for p0, p1, p2, p3, p4 in T.grid(n, (c + 3) // 4, h, w, 4):
        if 4 * p1 + p4 >= c:
            B_flat[T.Cast("int64", p0) * (T.Cast("int64", (c + 3) // 4) * T.Cast("int64", h)) + T.Cast("int64", p1) * T.Cast("int64", h) + T.Cast("int64", p2), T.Cast("int64", p3) * T.int64(4) + T.Cast("int64", p4)] = T.float32(0.0)
