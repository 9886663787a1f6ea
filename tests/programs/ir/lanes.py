# Lanes where none may be: what the table of accesses in tests/ir/test_lanes.py does not have.

# ----- store_before_the_last
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    A[T.Ramp(0, 1, 4), 0] = T.Broadcast(T.float32(0), 4)
    # error[LP127] 5-56: index 0 of A has lanes; only the last one may

# ----- load_before_the_last
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    B[T.Ramp(0, 1, 4)] = A[T.Ramp(0, 1, 4), 0]
    # error[LP127] 26-46: index 0 of A has lanes; only the last one may

# ----- lanes_in_two_indices
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    A[T.Ramp(0, 1, 4), T.Ramp(0, 1, 4)] = T.Broadcast(T.float32(0), 16)
    # error[LP127] 5-71: index 0 of A has lanes; only the last one may

# ----- lanes_without_an_axis
@T.prim_func
def main(A: T.Buffer((), "float32")):
    A[T.Ramp(0, 1, 4)] = T.Broadcast(T.float32(0), 4)
    # error[LP127] 5-53: A has 0 axes and is indexed by 1

# ----- vector_in_scalar_by_scalar
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    B[0] = T.Broadcast(T.float32(0), 4)
    # error[LP127] 5-39: a float32x4 stored to B, which takes float32 here

# ----- scalar_in_scalar_by_ramp
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    B[T.Ramp(0, 1, 4)] = T.float32(0)
    # error[LP127] 5-37: a float32 stored to B, which takes float32x4 here

# ----- longer_in_scalar_by_ramp
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    B[T.Ramp(0, 1, 4)] = T.Broadcast(T.float32(0), 8)
    # error[LP127] 5-53: a float32x8 stored to B, which takes float32x4 here

# ----- scalar_in_scalar_by_vector
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    B[D[T.Ramp(0, 1, 4)]] = T.float32(0)
    # error[LP127] 5-40: a float32 stored to B, which takes float32x4 here

# ----- scalar_in_vector_by_scalar
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    V[0] = T.float32(0)
    # error[LP127] 5-23: a float32 stored to V, which takes float32x4 here

# ----- longer_in_vector_by_scalar
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    V[0] = T.Broadcast(T.float32(0), 8)
    # error[LP127] 5-39: a float32x8 stored to V, which takes float32x4 here

# ----- element_in_vector_by_ramp
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    V[T.Ramp(0, 1, 2)] = T.Broadcast(T.float32(0), 4)
    # error[LP127] 5-53: a float32x4 stored to V, which takes float32x8 here

# ----- index_in_vector_by_ramp
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    V[T.Ramp(0, 1, 2)] = T.Broadcast(T.float32(0), 2)
    # error[LP127] 5-53: a float32x2 stored to V, which takes float32x8 here

# ----- index_in_vector_by_vector
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    V[T.Broadcast(0, 2)] = T.Broadcast(T.float32(0), 2)
    # error[LP127] 5-55: a float32x2 stored to V, which takes float32x8 here

# ----- sum_of_two_lengths
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    B[T.Ramp(0, 1, 4)] = B[T.Ramp(0, 1, 4)] + B[T.Ramp(0, 1, 2)]
    # error[LP119] 26-64: the operands of `+` have types float32x4 and float32x2

# ----- select_of_two_lengths
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    B[T.Ramp(0, 1, 4)] = T.Select(B[T.Ramp(0, 1, 2)] < V[0], V[0], V[0])
    # error[LP119] 35-59: the operands of `<` have types float32x2 and float32x4

# ----- cast_that_changes_lanes
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    B[0] = T.Cast("float32", D[T.Ramp(0, 1, 4)])
    # error[LP119] 12-48: a cast from int32x4 to float32 changes the lanes

# ----- cast_that_adds_lanes
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    V[0] = T.Cast("float32x4", D[0])
    # error[LP119] 12-36: a cast from int32 to float32x4 changes the lanes

# ----- let_of_other_lanes
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    x: T.float32 = V[0]
    # error[LP119] 20-23: `x` is declared float32, its value has type float32x4
    B[0] = x

# ----- ramp_of_a_ramp
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    B[T.Ramp(T.Ramp(0, 1, 2), 1, 2)] = V[0]
    # error[LP119] 7-35: a ramp of 2 lanes from a int32x2

# ----- ramp_of_floats
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    V[0] = T.Ramp(T.float32(0), T.float32(1), 4)
    # error[LP119] 12-48: a ramp of float32 by float32

# ----- ramp_of_one_lane
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    B[T.Ramp(0, 1, 1)] = T.float32(0)
    # error[LP119] 7-21: a ramp of 1 lanes from a int32

# ----- ramp_of_unknown_lanes
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    B[T.Ramp(0, 1, D[0])] = V[0]
    # error[LP120] 20-23: the lanes of a ramp must be an integer literal

# ----- broadcast_of_a_vector
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    B[T.Ramp(0, 1, 8)] = T.Broadcast(V[0], 2)
    # error[LP119] 26-45: a broadcast of a float32x4 to 2 lanes

# ----- branch_by_lanes
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    if V[0] < V[1]:
    # error[LP119] 5-4:27: a branch on a boolx4
        B[0] = T.float32(0)

# ----- lazy_choice_by_lanes
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    V[0] = T.if_then_else(V[0] < V[1], V[0], V[1])
    # error[LP119] 12-50: if_then_else takes one condition, not one per lane

# ----- loop_over_lanes
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    for i in range(D[T.Ramp(0, 1, 4)]):
    # error[LP119] 20-37: the extent of a loop has type int32x4, an integer is expected
        B[i] = T.float32(0)

# ----- assumption_of_lanes
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    T.evaluate(T.assume(V[0] == V[1]))
    # error[LP119] 16-37: an assumption is a truth value, not a boolx4

# ----- effect_of_lanes
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    T.evaluate(V[0])
    # error[LP168] 16-19: main: 4 lanes in an effect, which is one for all of them

# ----- extent_of_lanes
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    W = T.decl_buffer((D[T.Ramp(0, 1, 4)],), "float32", data=B.data)
    # error[LP119] 24-41: an extent has type int32x4, an integer is expected
    W[0] = T.float32(0)

# ----- offset_of_lanes
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    W = T.decl_buffer((4,), "float32", data=B.data, elem_offset=T.Ramp(0, 1, 4))
    # error[LP119] 65-79: an offset has type int32x4, an integer is expected
    W[0] = T.float32(0)

# ----- binding_of_lanes
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    for i in range(4):
        with T.sblock("one"):
            v = T.axis.spatial(16, T.Ramp(i, 1, 4))
            # error[LP119] 36-50: an axis ranges over integers, this has type int32x4
            B[v] = T.float32(0)

# ----- domain_of_lanes
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    for i in range(4):
        with T.sblock("one"):
            v = T.axis.spatial(T.Ramp(0, 1, 4), i)
            # error[LP119] 32-46: an axis ranges over integers, this has type int32x4
            B[v] = T.float32(0)

# ----- guard_of_lanes
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    for i in range(4):
        with T.sblock("one"):
        # error[LP119] 9-7:31: block one is guarded by a boolx4
            v = T.axis.spatial(4, i)
            T.where(T.Ramp(i, 1, 4) < T.Broadcast(3, 4))
            B[v] = T.float32(0)

# ----- region_of_lanes
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):
    for i in range(4):
        with T.sblock("one"):
            v = T.axis.spatial(4, i)
            T.reads(B[T.Ramp(v, 1, 4)])
            # error[LP119] 23-37: an index of a region has type int32x4, an integer is expected
            B[v] = T.float32(0)
