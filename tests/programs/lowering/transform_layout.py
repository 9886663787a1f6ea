# Layout transforms that are refused.

# ----- not_injective
# step: transform_layout(block='copy', buffer='B', index_map='lambda i: [i//4]', pad_value=None)
@T.prim_func(s_tir=True)
def main(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
# error[LP314] 41-69: `lambda i: [i//4]` is not injective on B of shape [14]: [0] and [1] both go to [0]
    for i in range(14):
        with T.sblock("copy"):
            v = T.axis.spatial(14, i)
            T.reads(A[v])
            T.writes(B[v])
            B[v] = A[v]

# ----- not_injective_rotation
# step: transform_layout(block='copy', buffer='B', index_map='lambda i: [(4*i) % 14]', pad_value=None)
# error[LP314] 2:41-69: `lambda i: [4*i%14]` is not injective on B of shape [14]: [0] and [7] both go to [0]

# ----- below_zero
# step: transform_layout(block='copy', buffer='B', index_map='lambda i: [i - 1]', pad_value=None)
# error[LP103]: axis 0 of the index map, `i - 1`, is -1 at the logical index (0): a physical index is at least 0
# help: add an offset that keeps it at or above 0, or wrap it with `%`

# ----- map_of_another_rank
# step: transform_layout(block='copy', buffer='B', index_map='lambda i, j: [i, j]', pad_value=None)
# error[LP309] 2:41-69: `lambda i, j: [i, j]` takes 2 indices, B has 1 axis

# ----- map_is_no_lambda
# step: transform_layout(block='copy', buffer='B', index_map='[i//4, i%4]', pad_value=None)
# error[LP121] <index map> 1:1-11: an index map is a lambda, this is a list
# help: for example: lambda n, h, w, c: [n, c//4, h, w, c%4]

# ----- map_with_a_float
# step: transform_layout(block='copy', buffer='B', index_map='lambda i: [i*0.5]', pad_value=None)
# error[LP119] <index map> 1:14-16: 0.5 is a float: an index map is made of integers

# ----- unknown_buffer
# step: transform_layout(block='copy', buffer='b', index_map='lambda i: [i//4, i%4]', pad_value=None)
# error[LP301]: main has no buffer called 'b'
# help: available: A, B

# ----- unknown_block
# step: transform_layout(block='cpoy', buffer='B', index_map='lambda i: [i//4, i%4]', pad_value=None)
# error[LP303]: main has no block called 'cpoy'
# help: did you mean 'copy'?

# ----- block_without_the_buffer
# step: transform_layout(block='first', buffer='C', index_map='lambda i, j: [j, i]', pad_value=None)
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16, 12), "int32"), C: T.Buffer((16, 12), "int32")):
    B = T.sblock_alloc_buffer((16, 12), "int32")
    for i, j in T.grid(16, 12):
        with T.sblock("first"):
        # error[LP308] 9-9:37: block first neither reads nor writes C
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

# ----- pad_int8_for_int32
# step: transform_layout(block='copy', buffer='B', index_map='lambda i: [i//4, i%4]', pad_value='T.int8(0)')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")):
    for i in range(14):
        with T.sblock("copy"):
            v = T.axis.spatial(14, i)
            T.reads(A[v])
            T.writes(B[v])
            B[v] = A[v]
            # error[LP305] <pad value> 1:1-9: the pad value has type int8, B holds int32

# ----- pad_int32_for_float32
# step: transform_layout(block='copy', buffer='B', index_map='lambda i: [i//4, i%4]', pad_value='T.int32(0)')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    for i in range(14):
        with T.sblock("copy"):
            v = T.axis.spatial(14, i)
            T.reads(A[v])
            T.writes(B[v])
            B[v] = A[v]
            # error[LP305] <pad value> 1:1-10: the pad value has type int32, B holds float32

# ----- pad_half_for_int32
# step: transform_layout(block='copy', buffer='B', index_map='lambda i: [i//4, i%4]', pad_value=0.5)
@T.prim_func(s_tir=True)
def main(A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")):
    for i in range(14):
        with T.sblock("copy"):
            v = T.axis.spatial(14, i)
            T.reads(A[v])
            T.writes(B[v])
            B[v] = A[v]
            # error[LP305]: the pad value 0.5 is not a constant of type int32

# ----- pad_too_large_for_int8
# step: transform_layout(block='copy', buffer='B', index_map='lambda i: [i//4, i%4]', pad_value=300)
@T.prim_func(s_tir=True)
def main(A: T.Buffer((14,), "int8"), B: T.Buffer((14,), "int8")):
    for i in range(14):
        with T.sblock("copy"):
            v = T.axis.spatial(14, i)
            T.reads(A[v])
            T.writes(B[v])
            B[v] = A[v]
            # error[LP305]: the pad value 300 is not a constant of type int8

# ----- pad_not_a_float32
# step: transform_layout(block='copy', buffer='B', index_map='lambda i: [i//4, i%4]', pad_value=16777217)
@T.prim_func(s_tir=True)
def main(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    for i in range(14):
        with T.sblock("copy"):
            v = T.axis.spatial(14, i)
            T.reads(A[v])
            T.writes(B[v])
            B[v] = A[v]
            # error[LP305]: the pad value 16777217 is not a constant of type float32

# ----- pad_number_for_bool
# step: transform_layout(block='copy', buffer='B', index_map='lambda i: [i//4, i%4]', pad_value=1)
@T.prim_func(s_tir=True)
def main(A: T.Buffer((14,), "bool"), B: T.Buffer((14,), "bool")):
    for i in range(14):
        with T.sblock("copy"):
            v = T.axis.spatial(14, i)
            T.reads(A[v])
            T.writes(B[v])
            B[v] = A[v]
            # error[LP305]: the pad value 1 is not a constant of type bool

# ----- pad_bool_for_int32
# step: transform_layout(block='copy', buffer='B', index_map='lambda i: [i//4, i%4]', pad_value=True)
@T.prim_func(s_tir=True)
def main(A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")):
    for i in range(14):
        with T.sblock("copy"):
            v = T.axis.spatial(14, i)
            T.reads(A[v])
            T.writes(B[v])
            B[v] = A[v]
            # error[LP305]: the pad value True is not a constant of type int32

# ----- pad_of_two_values
# step: transform_layout(block='copy', buffer='B', index_map='lambda i: [i//4, i%4]', pad_value='lambda i, j: [0.0, 1.0]')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    for i in range(14):
        with T.sblock("copy"):
            v = T.axis.spatial(14, i)
            T.reads(A[v])
            T.writes(B[v])
            B[v] = A[v]
            # error[LP305] <pad value> 1:14-23: a pad value is one value, this is a list of 2

# ----- pad_of_one_index
# step: transform_layout(block='copy', buffer='B', index_map='lambda i: [i//4, i%4]', pad_value='lambda i: 0.0')
# error[LP305] <pad value> 1:1-13: the pad value takes 1 index, B has 2 physical axes

# ----- pad_loads_another_buffer
# step: transform_layout(block='copy', buffer='B', index_map='lambda i: [i//4, i%4]', pad_value='lambda i, j: A[i]')
# error[LP306] <pad value> 1:14-17: the pad value loads A: only constants and B itself may stand in it

# ----- pad_undef_in_an_index
# step: transform_layout(block='copy', buffer='B', index_map='lambda i: [i//4, i%4]', pad_value='lambda i, j: B[T.undef(dtype="int32"), j]')
# error[LP307] <pad value> 1:14-41: the pad value has undef in an index

# ----- pad_undef_in_part
# step: transform_layout(block='copy', buffer='B', index_map='lambda i: [i//4, i%4]', pad_value='lambda i, j: T.undef(dtype="float32") + T.float32(1)')
# error[LP307] <pad value> 1:14-52: undef may only be the whole pad value, not a part of it

# ----- pad_undefined_name
# step: transform_layout(block='copy', buffer='B', index_map='lambda i: [i//4, i%4]', pad_value='lambda i, j: k')
# error[LP116] <pad value> 1:14-14: `k` is not defined here

# ----- pad_not_python
# step: transform_layout(block='copy', buffer='B', index_map='lambda i: [i//4, i%4]', pad_value='lambda i, j:')
# error[LP110] <pad value> 1:1-1: not Python syntax: invalid syntax

# ----- pad_of_vectors
# step: transform_layout(block='copy', buffer='A', index_map='lambda i: [i//4, i%4]', pad_value=0.0)
@T.prim_func(s_tir=True)
def main(A: T.Buffer((14,), "float32x4"), B: T.Buffer((14,), "float32x4")):
# error[LP310] 10-40: A holds vectors: what its padding holds cannot be assumed
    for i in range(14):
        with T.sblock("copy"):
            v = T.axis.spatial(14, i)
            B[v] = A[v]

# ----- aliases
# step: transform_layout(block='copy', buffer='C', index_map='lambda i: [i//4, i%4]', pad_value=None)
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    C = T.alloc_buffer((16,), "int32")
    rows = T.decl_buffer((4, 4), "int32", data=C.data)
    # error[LP315] 5-54: C has aliases that would be left behind: rows, pairs
    # help: an alias moves along where its shape and type are the same: all together or none
    pairs = T.decl_buffer((8, 2), "int32", data=C.data)
    for i in range(16):
        with T.sblock("copy"):
            v = T.axis.spatial(16, i)
            C[v] = A[v]
            B[v] = rows[v // 4, v % 4] + pairs[v // 2, v % 2]

# ----- matched_region
# step: transform_layout(block='row', buffer='A', index_map='lambda i, j: [j, i]', pad_value=None)
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8, 8), "int32")):
    for i in range(8):
        with T.sblock("row"):
            vi = T.axis.spatial(8, i)
            row = T.match_buffer(A[vi, 0:8], (8,), "int32")
            # error[LP315] 13-59: row is a view of a region of A and would be left behind
            row[0] = 0
            A[vi, 1] = 1

# ----- pointer
# step: transform_layout(block='call', buffer='A', index_map='lambda i: [i//4, i%4]', pad_value=None)
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "int32")):
    with T.sblock("call"):
        A[0] = 0
        T.evaluate(T.call_extern("int32", "frobnicate", A.data))
        # error[LP317] 20-63: A is handed to call_extern, which would see it in its old layout

# ----- vector_index
# step: transform_layout(block='copy', buffer='B', index_map='lambda i: [i//4, i%4]', pad_value=None)
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(4):
        with T.sblock("copy"):
            v = T.axis.spatial(4, i)
            B[T.Ramp(v * 4, 1, 4)] = A[T.Ramp(v * 4, 1, 4)]
            # error[LP318] 13-59: B is accessed with a vector index, which the index map would tear apart

# ----- fixed_interface
# step: transform_layout(block='copy', buffer='B', index_map='lambda i: [i//4, i%4]', pad_value=None)
# interface: fixed
@T.prim_func(s_tir=True)
def main(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
# error[LP319] 1-8: transform_layout would change the layout of the parameter B, and the schedule's interface is fixed
    for i in range(14):
        with T.sblock("copy"):
            v = T.axis.spatial(14, i)
            T.reads(A[v])
            T.writes(B[v])
            B[v] = A[v]

# ----- out_of_bounds
# step: transform_layout(block='shift', buffer='B', index_map='lambda i: [i//2, i%2]', pad_value=None)
@T.prim_func(s_tir=True)
def main(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    for i in range(14):
        with T.sblock("shift"):
            v = T.axis.spatial(14, i)
            B[v] = A[v + 1]
            # error[LP215] 13-27: transform_layout(block='shift', buffer='B', index_map='lambda i: [i//2, i%2]', pad_value=None): read A[v + 1] stays within [14] (line 6) is refuted: A[14] of [14] at i = 13; the program before has a fault of this kind, too
