# Texts that the reader refuses for their types and statements, each for one reason.

# ----- mixed_types
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[0] = T.float16(1) + T.bfloat16(1)
    # error[LP119] 12-39: float16 and bfloat16 meet: which one is meant differs between versions of TVM
    # help: write T.Cast("float16", ...)

# ----- integer_slash
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[n / 2] = T.float32(0)
    # error[LP119] 7-11: `/` takes floats, not int32; integers are divided by `//` or truncdiv

# ----- truth_value_wanted
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[0] = T.if_then_else(n, A[0, 0], A[0, 1])
    # error[LP119] 27-27: a truth value is expected, this has type int32

# ----- truth_value_in_arithmetic
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[(n < 3) + (n < 4)] = T.float32(0)
    # error[LP119] 7-23: `+` takes numbers, not bool

# ----- integer_too_large
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[n + 99999999999999999999] = T.float32(0)
    # error[LP115] 11-30: the number does not fit 64 bits

# ----- integer_too_large_for_type
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[n + T.int32(4294967296)] = T.float32(0)
    # error[LP115] 19-28: 4294967296 does not fit int32

# ----- select_of_two_types
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[0] = T.Select(n < 3, A[0, 0], 0)
    # error[LP119] 12-38: the operands of T.Select have types float32 and int32, and TVM does not bring them to one
    # help: write T.float32(0)

# ----- node_of_two_types
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[0] = T.Mul(A[0, 0], n)
    # error[LP119] 12-28: the operands of T.Mul have types float32 and int32, and TVM does not bring them to one
    # help: write T.Cast("float32", ...)

# ----- number_without_value
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[0] = 1 // 0
    # error[LP115] 12-17: Python makes no number of this: integer division or modulo by zero

# ----- float_too_large
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[0] = 1e39
    # error[LP115] 12-15: 1e+39 is past the largest float32
    # help: write T.infinity(...)

# ----- fraction_as_integer
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[T.int32(1.5)] = T.float32(0)
    # error[LP119] 15-17: 1.5 is not a constant of int32

# ----- string_as_value
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[0] = 'zero'
    # error[LP119] 12-17: a string stands where a value is expected

# ----- f_string
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[0] = f'{n}'
    # error[LP117] 12-17: an f-string cannot stand in an expression here

# ----- power
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[n ** 2] = T.float32(0)
    # error[LP117] 7-12: `**` is not supported
    # help: floats have T.pow(a, b)

# ----- while_loop
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    while n > 0:
    # error[LP117] 11-15: how often this `while` loop runs is not known from its text
    # help: a `while` is read if it counts: `i[0] = 0`, then `while i[0] < 10:` with one `i[0] = i[0] + 1` directly in its body, of a buffer that the function allocates
        pass

# ----- return_statement
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    return
    # error[LP117] 5-10: `return` without a value is not supported
    # help: a program's results are the buffers that it writes

# ----- nested_function
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    def f():
    # error[LP117] 5-4:12: a function inside a function is not supported
        pass

# ----- loop_over_list
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for i in [1, 2]:
    # error[LP117] 14-19: a loop runs over range(...), T.serial(...), T.grid(...) and the like
        pass

# ----- loop_else
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for i in range(3):
        pass
    else:
        pass
        # error[LP117] 9-12: `else` after a loop is not supported

# ----- grid_mismatch
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for i, j in T.grid(3):
    # error[LP120] 9-12: 2 loop variables for 1 extent
        pass

# ----- negative_loop
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for i in range(-3):
    # error[LP123] 20-21: a loop of -3 iterations
        pass

# ----- range_with_step
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for i in range(0, 10, 0):
    # error[LP120] 27-27: a loop in steps of 0
        pass

# ----- thread_without_name
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for i in T.thread_binding(16):
    # error[LP120] 14-33: T.thread_binding lacks its thread, such as thread="threadIdx.x"
        pass

# ----- bound_twice
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for i in range(3):
        for i in range(4):
        # error[LP124] 13-13: `i` is bound again, its first meaning still holds here
        # note 3:9-9: first bound here
            pass

# ----- parameter_bound_again
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for n in range(3):
    # error[LP124] 9-9: `n` is bound again, its first meaning still holds here
    # note 2:75-84: first bound here
        pass

# ----- remap_of_expression
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for i, j in T.grid(16, 14):
        with T.block("X"):
            vi = T.axis.remap('S', [i * 2])
            # error[LP120] 37-41: T.axis.remap takes loop variables only
            # help: write T.axis.spatial(extent, binding)

# ----- remap_of_wrong_length
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for i, j in T.grid(16, 14):
        with T.block("X"):
            vi, vj = T.axis.remap('SSR', [i, j])
            # error[LP120] 22-48: T.axis.remap has 2 names, 3 kinds and 2 bindings; they must be as many

# ----- remap_of_unknown_kind
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for i, j in T.grid(16, 14):
        with T.block("X"):
            vi, vj = T.axis.remap('SX', [i, j])
            # error[LP120] 35-38: 'X' is no kind of axis: S is spatial, R is reduce, O is opaque

# ----- init_in_a_guard
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for i, j in T.grid(16, 14):
        with T.block("X"):
            vi, vj = T.axis.remap('SR', [i, j])
            if vi < 3:
                with T.init():
                # error[LP125] 22-29: T.init stands directly in its block, after its axes and before its body
                    B[vi] = T.float32(0)

# ----- init_outside_a_block
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    with T.init():
    # error[LP125] 10-17: T.init stands directly in its block, after its axes and before its body
        B[0] = T.float32(0)

# ----- init_twice
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for i, j in T.grid(16, 14):
        with T.block("X"):
            with T.init():
                pass
            with T.init():
            # error[LP125] 13-8:20: a block has one T.init
                pass
            B[i] = T.float32(0)

# ----- reads_after_a_statement
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for i, j in T.grid(16, 14):
        with T.block("X"):
            B[i] = T.float32(0)
            T.reads(B[i])
            # error[LP125] 13-25: T.reads stands at the start of a block, before its other statements

# ----- reads_outside_a_block
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    T.reads(B[0])
    # error[LP125] 5-17: T.reads stands at the start of a block, before its other statements

# ----- where_twice
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for i, j in T.grid(16, 14):
        with T.block("X"):
            T.where(i < 3)
            T.where(j < 3)
            # error[LP125] 13-26: a block has one T.where

# ----- region_of_wrong_rank
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for i, j in T.grid(16, 14):
        with T.block("X"):
            T.reads(A[i])
            # error[LP127] 21-24: A has 2 axes, this region has 1
            B[i] = T.float32(0)

# ----- attribute_key_twice
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    T.func_attr({'a': 1, 'a': 2})
    # error[LP120] 26-28: T.func_attr has the key "a" twice

# ----- attributes_not_a_dictionary
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    T.func_attr(3)
    # error[LP120] 17-17: T.func_attr takes a dictionary, not a constant

# ----- attributes_late
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    x: T.int32 = 3
    T.func_attr({})
    # error[LP125] 5-19: T.func_attr stands at the start of the function, before its other statements

# ----- allocation_late
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    x: T.int32 = 3
    C = T.alloc_buffer((x,))
    # error[LP125] 9-28: T.alloc_buffer stands at the start of the function or a block, before its other statements

# ----- let_of_wrong_type
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    x: T.let[T.int32] = B[0]
    # error[LP119] 25-28: `x` is declared int32, its value has type float32

# ----- let_without_value
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    x: T.int32
    # error[LP117] 5-14: `x` is given no value
    # help: a symbolic size is n = T.int32()

# ----- let_assigned_again
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    x: T.int32 = 3
    x = x + 1
    # error[LP124] 5-5: `x` is bound again, its first meaning still holds here
    # note 3:5-5: first bound here

# ----- missing_argument
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[0] = T.Select(n < 3, B[1])
    # error[LP120] 12-32: T.Select lacks `false_value`; it takes 3 arguments (condition, true_value, false_value)

# ----- extra_argument
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[0] = T.exp(B[0], B[1])
    # error[LP120] 24-27: T.exp takes 1 argument (x), not 2

# ----- unknown_keyword
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[0] = T.exp(y=B[0])
    # error[LP120] 18-23: T.exp has no argument `y`

# ----- undef_without_type
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    T.evaluate(T.undef())
    # error[LP119] 16-24: the type is not known here: write T.undef(dtype="...")

# ----- infinity_of_integers
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    T.evaluate(T.infinity('int32'))
    # error[LP119] 16-34: int32 has no infinity

# ----- ramp_of_one_lane
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[T.ramp(0, 1, 1)] = T.float32(0)
    # error[LP119] 7-21: a ramp of 1 lanes from a int32

# ----- value_not_used
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[0] + 1
    # error[LP117] 5-12: an expression whose value is not used
    # help: T.evaluate(...) keeps it

# ----- false_assertion
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    assert B[0].dtype == "float16"
    # error[LP128] 5-34: the assertion is false: the type is float32

# ----- other_assertion
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    assert n > 3
    # error[LP117] 5-16: only assertions about types, `assert A[0].dtype == "float32"`, are supported

# ----- alias_without_data
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    V = T.decl_buffer((14,), 'float32', data=n)
    # error[LP127] 46-46: the data of a buffer is another buffer's data, or a handle

# ----- slice_of_unknown_length
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[0:n] = T.float32(0)
    # error[LP127] 7-9: index 0 of B: a slice of a fixed number of elements is expected

# ----- conditional_allocation
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    M = T.allocate([16], 'float32', 'global', n > 3)
    # error[LP117] 47-51: an allocation under a condition is not supported

# ----- allocation_with_an_offset
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    C = T.alloc_buffer((4,), "float32", elem_offset=2)
    # error[LP117] 53-53: memory that is allocated for a buffer has no room before its first element
    # help: allocate the memory by itself, and view it by T.decl_buffer(..., data=..., elem_offset=...)
    B[0] = C[0]

# ----- declaration_of_memory_with_an_offset
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[0] = A[0, 0]
    C = T.decl_buffer((4,), "float32", data=None, elem_offset=n)
    # error[LP117] 63-63: memory that is allocated for a buffer has no room before its first element
    # help: allocate the memory by itself, and view it by T.decl_buffer(..., data=..., elem_offset=...)
    B[0] = C[0]

# ----- wide_characters
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    é = T.float32(1)
    B[0] = é + über
    # error[LP116] 16-19: `über` is not defined here

# ----- tabs
@T.prim_func
def main(A: T.Buffer((4,), 'float32')):
	for i in range(4):
		A[i] = A[k]
		# error[LP116] 12-12: `k` is not defined here
