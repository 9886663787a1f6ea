# about: an axis of extent 1 beside others of extent 1, flattened with its group or alone
# expect: proved
# strictness: ieee
# functions: main, main
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((2, 6, 3, 3), "float32"), b: T.Buffer((6, 1, 1, 4), "float32", scope="global.texture", axis_separators=[1, 3]), T_add: T.Buffer((2, 6, 3, 3), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"b_data": {"logical_shape": [6, 1, 1], "steps": [{"index_map": "lambda i0, i1, i2: [i0, AXIS_SEPARATOR, i2//4, i1, AXIS_SEPARATOR, i2%4]", "shape": [6, 1, 1, 4], "contract": None}]}}, "buffer_axis_separators": {"b_data": [0, 2]}})
    for ax0, ax1, ax2, ax3 in T.grid(2, 6, 3, 3):
        T_add[ax0, ax1, ax2, ax3] = A[ax0, ax1, ax2, ax3] + b[ax1, 0, 0, 0]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((2, 6, 3, 3), "float32"), b: T.Buffer((6, 1, 1, 4), "float32", scope="global.texture", axis_separators=[1, 3]), T_add: T.Buffer((2, 6, 3, 3), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"b_data": {"logical_shape": [6, 1, 1], "steps": [{"index_map": "lambda i0, i1, i2: [i0, AXIS_SEPARATOR, i2//4, i1, AXIS_SEPARATOR, i2%4]", "shape": [6, 1, 1, 4], "contract": None}]}}, "buffer_axis_separators": {"b_data": [0, 1]}})
    A_flat = T.decl_buffer((108,), "float32", data=A.data)
    b_flat = T.decl_buffer((6, 1, 4), "float32", data=b.data, scope="global.texture", axis_separators=[1, 2])
    T_add_flat = T.decl_buffer((108,), "float32", data=T_add.data)
    for ax0, ax1, ax2, ax3 in T.grid(2, 6, 3, 3):
        T_add_flat[ax0 * 54 + ax1 * 9 + ax2 * 3 + ax3] = A_flat[ax0 * 54 + ax1 * 9 + ax2 * 3 + ax3] + b_flat[ax1, 0, 0]
