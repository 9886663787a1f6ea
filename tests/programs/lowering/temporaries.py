# Transforms of temporaries that are refused.

# ----- compact_parameter
# step: compact_buffer(buffer='A')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16, 12), "int32"), C: T.Buffer((16, 12), "int32")):
# error[LP354] 10-39: A is memory of the caller; only a buffer that the function allocates can be given another shape
    B = T.sblock_alloc_buffer((16, 12), "int32")
    for i, j in T.grid(16, 12):
        with T.sblock("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] + 1
    for i, j in T.grid(16, 12):
        with T.sblock("second"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = B[vi, vj] * 2

# ----- compact_aliases
# step: compact_buffer(buffer='C')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.alloc_buffer((20,), "int32")
    rows = T.decl_buffer((4, 4), "int32", data=C.data)
    # error[LP315] 5-54: C has aliases that would be left behind: rows
    # help: transform all of them together
    for i in range(16):
        with T.sblock("copy"):
            v = T.axis.spatial(16, i)
            C[v] = A[v]
            B[v] = rows[v // 4, v % 4]

# ----- compact_waiting
# step: compact_buffer(buffer='B')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((6,), "int32")):
    T.func_attr({"buffer_layout_transformations": {"B_data": ["lambda i: [5 - i]"]}})
    B = T.sblock_alloc_buffer((6,), "int32")
    # error[LP354] 5-44: a layout transform of B waits in the attribute buffer_layout_transformations, and it is about the shape as it is
    # help: apply_buffer_transforms comes first
    for i in range(3):
        with T.sblock("copy"):
            v = T.axis.spatial(3, i)
            B[v] = A[v]

# ----- double_parameter
# step: inject_double_buffer(block='first', buffer='A', loop='i')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16, 12), "int32"), C: T.Buffer((16, 12), "int32")):
# error[LP354] 10-39: A is memory of the caller; only a buffer that the function allocates can be given another shape
    B = T.sblock_alloc_buffer((16, 12), "int32")
    for i, j in T.grid(16, 12):
        with T.sblock("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] + 1
    for i, j in T.grid(16, 12):
        with T.sblock("second"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = B[vi, vj] * 2

# ----- double_aliases
# step: inject_double_buffer(block='copy', buffer='C', loop='i')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.alloc_buffer((20,), "int32")
    rows = T.decl_buffer((4, 4), "int32", data=C.data)
    # error[LP315] 5-54: C has aliases that would be left behind: rows
    # help: transform all of them together
    for i in range(16):
        with T.sblock("copy"):
            v = T.axis.spatial(16, i)
            C[v] = A[v]
            B[v] = rows[v // 4, v % 4]

# ----- double_inside
# step: inject_double_buffer(block='outer', buffer='B', loop='i')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
    T.func_attr({"tirx.noalias": True})
    D = T.sblock_alloc_buffer((6,), "int32")
    for i in range(6):
        with T.sblock("outer"):
        # error[LP355] 9-11:28: B is allocated anew in each iteration of loop i: there is nothing to take in turns
            vi = T.axis.spatial(6, i)
            B = T.sblock_alloc_buffer((1,), "int32")
            with T.sblock("inner"):
                B[0] = A[vi] + 1
                D[vi] = B[0]
    for i in range(6):
        with T.sblock("last"):
            v = T.axis.spatial(6, i)
            C[v] = D[v]

# ----- double_outside
# step: inject_double_buffer(block='outer', buffer='D', loop='i')
# error[LP355] 5:5-11:28: D is used outside loop i too, where no iteration says which copy is meant

# ----- double_unused
# step: inject_double_buffer(block='last', buffer='B', loop='i')
# error[LP308] 12:5-15:23: loop i neither reads nor writes B

# ----- double_unknown_loop
# step: inject_double_buffer(block='outer', buffer='D', loop='k')
# error[LP334]: block outer has no loop 'k'
# help: its loops are i

# ----- decompose_no_choice
# step: decompose_padding(block='copy', loop='i')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    for i in range(14):
        with T.sblock("copy"):
        # error[LP356] 9-8:23: block copy is not one store of `if_then_else(inside, x, constant)`
            v = T.axis.spatial(14, i)
            T.reads(A[v])
            T.writes(B[v])
            B[v] = A[v]

# ----- decompose_root
# step: decompose_padding(block='root', loop=0)
@T.prim_func(s_tir=True)
def main(A: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
# error[LP356] 1-8: the body of a function is no block that pads; name one
    T.func_attr({"tirx.noalias": True})
    for i in range(6):
        with T.sblock("by_data"):
            v = T.axis.spatial(6, i)
            C[v] = T.if_then_else(A[v] > 0, A[v], 0)
        with T.sblock("of_two"):
            v = T.axis.spatial(6, i)
            C[v] = T.if_then_else(v > 2, A[v], A[0])
    for i in range(6):
        with T.sblock("of_nothing"):
            v = T.axis.spatial(6, i)
            C[v] = T.if_then_else(v < 6, A[v], 0)

# ----- decompose_by_data
# step: decompose_padding(block='by_data', loop='i')
# error[LP356] 5:9-7:52: block by_data pads by a condition on what is in memory

# ----- decompose_two_loads
# step: decompose_padding(block='of_two', loop='i')
# error[LP356] 8:9-10:52: block of_two chooses between two values from memory, and none of them is a constant

# ----- decompose_nothing
# step: decompose_padding(block='of_nothing', loop='i')
# error[LP356] 12:9-14:49: the condition of block of_nothing always holds: it pads nothing

# ----- decompose_reduction
# step: decompose_padding(block='sum', loop='i')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((14, 5), "int32"), B: T.Buffer((14,), "int32")):
    for i, k in T.grid(14, 5):
        with T.sblock("sum"):
        # error[LP356] 9-10:37: block sum is not one store of `if_then_else(inside, x, constant)`
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(B[vi])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]

# ----- einsum_arity
# step: pad_einsum(block='sum', padding=[4])
# error[LP357] 4:9-10:37: 1 factor for block sum, which has 2 iterators

# ----- einsum_root
# step: pad_einsum(block='root', padding=[4])
# error[LP353] 2:1-8: the body of a function has no iterators to pad

# ----- einsum_of_an_assumption
# step: pad_einsum(block='known', padding=[3])
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        with T.sblock("known"):
        # error[LP357] 9-7:51: block known stores nothing
            v = T.axis.spatial(8, i)
            T.assume(v < 6 or A[v] == T.float32(0))
    for i in range(8):
        with T.sblock("copy"):
            v = T.axis.spatial(8, i)
            B[v] = A[v]

# ----- einsum_zero
# step: pad_einsum(block='sum', padding=[4, 0])
@T.prim_func(s_tir=True)
def main(A: T.Buffer((14, 5), "int32"), B: T.Buffer((14,), "int32")):
    for i, k in T.grid(14, 5):
        with T.sblock("sum"):
        # error[LP357] 9-10:37: vk cannot be padded to a multiple of 0
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(B[vi])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]

# ----- einsum_window
# step: pad_einsum(block='conv2d_nhwc', padding=[1, 4, 1, 1, 1, 1, 1])
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@T.prim_func(s_tir=True)
def main(A: T.Buffer((1, 3, 3, 6), "float32"), W: T.Buffer((3, 3, 6, 6), "float32"), conv2d_nhwc: T.Buffer((1, 3, 3, 6), "float32")):
    T.func_attr({"layout_free_buffers": [1], "tirx.noalias": True})
    # with T.sblock("root"):
    pad_temp = T.sblock_alloc_buffer((1, 5, 5, 6))
    for i0, i1, i2, i3 in T.grid(1, 5, 5, 6):
        with T.sblock("pad_temp"):
            v_i0, v_i1, v_i2, v_i3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
            T.reads(A[v_i0, v_i1 - 1, v_i2 - 1, v_i3])
            T.writes(pad_temp[v_i0, v_i1, v_i2, v_i3])
            pad_temp[v_i0, v_i1, v_i2, v_i3] = T.if_then_else(1 <= v_i1 and v_i1 < 4 and 1 <= v_i2 and v_i2 < 4, A[v_i0, v_i1 - 1, v_i2 - 1, v_i3], T.float32(0.0))
    for nn, yy, xx, ff, ry, rx, rc in T.grid(1, 3, 3, 6, 3, 3, 6):
        with T.sblock("conv2d_nhwc"):
            v_nn, v_yy, v_xx, v_ff, v_ry, v_rx, v_rc = T.axis.remap("SSSSRRR", [nn, yy, xx, ff, ry, rx, rc])
            T.reads(pad_temp[v_nn, v_yy + v_ry, v_xx + v_rx, v_rc], W[v_ry, v_rx, v_rc, v_ff])
            T.writes(conv2d_nhwc[v_nn, v_yy, v_xx, v_ff])
            with T.init():
                conv2d_nhwc[v_nn, v_yy, v_xx, v_ff] = T.float32(0.0)
            conv2d_nhwc[v_nn, v_yy, v_xx, v_ff] = conv2d_nhwc[v_nn, v_yy, v_xx, v_ff] + pad_temp[v_nn, v_yy + v_ry, v_xx + v_rx, v_rc] * W[v_ry, v_rx, v_rc, v_ff]
            # error[LP357] 89-134: pad_temp is indexed by `v_yy + v_ry` in block conv2d_nhwc, which is no iterator by itself

# ----- einsum_among_others
# step: pad_einsum(block='first', padding=[4])
@T.prim_func(s_tir=True)
def main(A: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
    T.func_attr({"tirx.noalias": True})
    B = T.sblock_alloc_buffer((6,), "int32")
    for i in range(6):
    # error[LP338] 5-11:27: the loops of block first hold more than the block
        with T.sblock("first"):
            v = T.axis.spatial(6, i)
            B[v] = A[v] + 1
        with T.sblock("second"):
            v = T.axis.spatial(6, i)
            C[v] = B[v] * 2
