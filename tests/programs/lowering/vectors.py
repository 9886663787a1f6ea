# Loops that do not become lanes, and memory that is not seen as vectors.

# ----- branch
# step: vectorize_loop()
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for j in T.vectorized(8):
        if j < 5:
        # error[LP381] 12-16: loop j cannot become lanes: the branch that is taken differs from lane to lane
        # help: with scalarize=True such statements run lane after lane
            B[0, j] = A[0, j]

# ----- one_element
# step: vectorize_loop()
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for j in T.vectorized(8):
        B[0, j] = A[0, j]
        B[1, 0] = A[0, 0]
        # error[LP381] 9-25: loop j cannot become lanes: every lane stores to one element of B
        # help: with scalarize=True such statements run lane after lane

# ----- index_before_the_last
# step: vectorize_loop()
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for j in T.vectorized(4):
        B[j, 0] = A[0, j]
        # error[LP381] 9-25: loop j cannot become lanes: index 0 of B differs from lane to lane, and only the last one may
        # help: with scalarize=True such statements run lane after lane

# ----- lazy_load
# step: vectorize_loop()
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for j in T.vectorized(8):
        B[0, j] = T.if_then_else(j < 5, A[0, j], T.float32(0))
        # error[LP381] 41-47: loop j cannot become lanes: a side of `if_then_else` is evaluated in some lanes only, and could fault in others
        # help: with scalarize=True such statements run lane after lane

# ----- lazy_division
# step: vectorize_loop()
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for j in T.vectorized(8):
        B[0, j] = T.Select(T.if_then_else(j > 0, 8 // j, 9) > 2, A[0, j], T.float32(0))
        # error[LP381] 50-55: loop j cannot become lanes: a side of `if_then_else` is evaluated in some lanes only, and could fault in others
        # help: with scalarize=True such statements run lane after lane

# ----- extent
# step: vectorize_loop()
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32"), n: T.int32):
    T.func_attr({"tirx.noalias": True})
    for j in T.vectorized(n):
    # error[LP381] 5-5:33: loop j cannot become lanes: the number of its iterations is no constant of at least 1
    # help: with scalarize=True such statements run lane after lane
        B[0, j % 8] = A[0, j % 8]

# ----- nested
# step: vectorize_loop()
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in T.vectorized(4):
        for j in T.vectorized(8):
            B[i, j] = A[i, j]
            # error[LP381] 13-29: loop i cannot become lanes: a value of int32x8 has lanes already
            # help: with scalarize=True such statements run lane after lane

# ----- inner_range
# step: vectorize_loop()
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for j in T.vectorized(4):
        for k in range(j):
        # error[LP381] 9-6:29: loop j cannot become lanes: the range of loop k differs from lane to lane
        # help: with scalarize=True such statements run lane after lane
            B[k, j] = A[k, j]

# ----- memory_inside
# step: vectorize_loop()
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for j in T.vectorized(4):
        with T.decl_buffer((1,), 'float32') as C:
        # error[LP381] 9-7:26: loop j cannot become lanes: each iteration has memory of its own for C
        # help: with scalarize=True such statements run lane after lane
            C[0] = A[0, j]
            B[0, j] = C[0]

# ----- branch_in_a_let
# step: vectorize_loop()
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for j in T.vectorized(4):
        x: T.float32 = A[0, j]
        if x < T.float32(0):
        # error[LP381] 12-27: loop j cannot become lanes: the branch that is taken differs from lane to lane
        # help: with scalarize=True such statements run lane after lane
            B[0, j] = x

# ----- vector_elements
# step: vectorize_loop()
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    V = T.decl_buffer((8,), 'float32x4', data=A.data)
    for j in T.vectorized(8):
        V[j] = T.Broadcast(T.float32(0), 4)
        # error[LP381] 9-43: loop j cannot become lanes: V has 4 lanes in each element already
        # help: with scalarize=True such statements run lane after lane

# ----- extern_call
# step: vectorize_loop()
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for j in T.vectorized(4):
        T.evaluate(T.call_extern('int32', 'tick', j))
        # error[LP381] 9-53: loop j cannot become lanes: it has an effect that is no store
        # help: with scalarize=True such statements run lane after lane

# ----- pointer_cast_vulkan
# step: rewrite_ramp_as_pointer_cast(target='vulkan')
@T.prim_func(s_tir=True)
def main(a: T.handle, b: T.handle):
# error[LP382] 1-8: vulkan cannot see memory under another number of lanes
# help: vector_type_rewrite gives buffers vectors as elements
    T.func_attr({"tirx.noalias": True})
    A = T.match_buffer(a, (16,), "float32")
    B = T.match_buffer(b, (16,), "float32")
    for i in range(4):
        B[T.Ramp(i*4, 1, 4)] = A[T.Ramp(i*4, 1, 4)]
    B[3] = A[5]

# ----- vector_target
# step: vector_type_rewrite(target='metal')
@T.prim_func(s_tir=True)
def main(a: T.handle, b: T.handle):
    T.func_attr({"tirx.noalias": True})
    A = T.match_buffer(a, (16,), "float32")
    B = T.match_buffer(b, (16,), "float32")
    for i in range(4):
        B[T.Ramp(i*4, 1, 4)] = A[T.Ramp(i*4, 1, 4)]
        # error[LP383]: there is no target 'metal'
        # help: available: c, opencl, vulkan

# ----- rewrite_ramp_as_pointer_cast_blocks
# step: rewrite_ramp_as_pointer_cast(target='opencl')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "float32")):
    for i in range(2):
        with T.sblock("zero"):
        # error[LP341] 9-6:65: rewrite_ramp_as_pointer_cast takes a program without blocks, and there is block zero: lower_blocks goes first
            v = T.axis.spatial(2, i)
            A[T.Ramp(v * 4, 1, 4)] = T.Broadcast(T.float32(0), 4)

# ----- vector_type_rewrite_blocks
# step: vector_type_rewrite(target='opencl', scalarize=False)
# error[LP341] 4:9-6:65: vector_type_rewrite takes a program without blocks, and there is block zero: lower_blocks goes first
