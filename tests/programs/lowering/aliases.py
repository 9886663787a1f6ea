# Layouts of memory that is seen in several shapes.

# ----- layout_of_C
# step: transform_layout(block='copy', buffer='C', index_map='lambda i: [i//4, i%4]')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    C = T.alloc_buffer((16,), "int32")
    again = T.decl_buffer((16,), "int32", data=C.data)
    rows = T.decl_buffer((4, 4), "int32", data=C.data)
    # error[LP315] 5-54: C has aliases that would be left behind: rows, late
    # help: an alias moves along where its shape and type are the same: all together or none
    late = T.decl_buffer((12,), "int32", data=C.data, elem_offset=4)
    for i in range(16):
        with T.sblock("copy"):
            v = T.axis.spatial(16, i)
            C[v] = A[v]
            B[v] = rows[v // 4, v % 4] + again[v] + late[v // 2]

# ----- layout_of_again
# step: transform_layout(block='copy', buffer='again', index_map='lambda i: [i//4, i%4]')
# error[LP315] 5:5-54: again has aliases that would be left behind: rows, late
# help: an alias moves along where its shape and type are the same: all together or none

# ----- layout_of_rows
# step: transform_layout(block='copy', buffer='rows', index_map='lambda i, j: [j, i]')
# error[LP315] 3:5-38: rows has aliases that would be left behind: C, again, late
# help: an alias moves along where its shape and type are the same: all together or none

# ----- flatten_one_axis
# step: flatten_buffer()
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8, 8), "int32"), B: T.Buffer((8, 8), "int32")):
    T.func_attr({"tirx.noalias": True, "buffer_axis_separators": {"C_data": [0]}})
    with T.decl_buffer((8, 8), "int32", axis_separators=[1]) as C:
        D = T.decl_buffer((64,), "int32", data=C.data)
        # error[LP315] 9-54: C is memory of 2 physical axes, and has aliases that see others: D
        # help: views of one memory have the same axis groups
        E = T.decl_buffer((8, 2, 4), "int32", data=C.data, axis_separators=[1])
        for i, j in T.grid(8, 8):
            C[i, j] = A[i, j]
        for i, j in T.grid(8, 8):
            B[i, j] = E[i, j // 4, j % 4]

# ----- flatten_other_extents
# step: flatten_buffer()
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8, 8), "int32"), B: T.Buffer((8, 8), "int32")):
    T.func_attr({"tirx.noalias": True, "buffer_axis_separators": {"C_data": [0]}})
    with T.decl_buffer((8, 8), "int32", axis_separators=[1]) as C:
        E = T.decl_buffer((4, 2, 4), "int32", data=C.data, axis_separators=[1])
        # error[LP315] 9-79: C is memory of 2 physical axes, and has aliases that see others: E
        # help: views of one memory have the same axis groups
        for i, j in T.grid(8, 8):
            C[i, j] = A[i, j]
        for i, j in T.grid(8, 8):
            B[i, j] = E[i, j // 4, j % 4]
