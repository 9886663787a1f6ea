# Texts that the reader refuses for their form, names and shapes, each for one reason.

# ----- not_python
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for i in
    # error[LP110] 13-13: not Python syntax: invalid syntax

# ----- not_python_indentation
@T.prim_func
def main(a: T.handle):
pass
# error[LP110] 1-4: not Python syntax: expected an indented block after function definition on line 2

# ----- unclosed_bracket
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[0 = T.float32(0)
    # error[LP110] 6-6: not Python syntax: '[' was never closed

# ----- no_decorator
def main(a: T.handle):
# error[LP126] 1-8: the function `main` is not decorated with T.prim_func
# help: nothing in a text is executed, so only programs may stand in it
    pass

# ----- other_decorator
@functools.cache
# error[LP126] 2-16: the function `main` is not decorated with T.prim_func
# help: nothing in a text is executed, so only programs may stand in it
def main(a: T.handle):
    pass

# ----- statement_at_the_top
x = 3
# error[LP126] 1-5: only imports, functions decorated with T.prim_func and modules of them may stand here

# ----- class_without_decorator
class Module:
# error[LP126] 1-12: the class `Module` is not decorated with I.ir_module
    pass

# ----- empty_module
@I.ir_module
# error[LP126] 1-12: there is no function decorated with T.prim_func
# help: programs are written @T.prim_func, then def main(...):
class Module:
    pass

# ----- two_functions
@T.prim_func
# error[LP126] 1-12: one function is expected, the text has 2: f, g
def f():
    pass
@T.prim_func
def g():
    pass

# ----- two_functions_of_one_name
@T.prim_func
def f():
    pass
@T.prim_func
def f():
# error[LP124] 1-5: two functions are called `f`
    pass

# ----- parameter_without_type
@T.prim_func
def main(A):
# error[LP126] 10-10: the parameter `A` has no type
# help: write T.Buffer((16, 14), "float32"), T.handle or T.int32
    pass

# ----- parameter_of_unknown_type
@T.prim_func
def main(A: T.Bufer((16,), "float32")):
# error[LP118] 13-37: `T.Bufer` is not known
# help: did you mean `T.Buffer`?
    pass

# ----- parameter_with_default
@T.prim_func
def main(n: T.int32 = 3):
# error[LP117] 23-23: a parameter of a program has no default
    pass

# ----- starred_parameter
@T.prim_func
def main(*rest):
# error[LP117] 11-14: a program has plain positional parameters
    pass

# ----- unknown_dtype
@T.prim_func
def main(A: T.Buffer((16,), "float23")):
# error[LP119] 29-37: unknown data type 'float23'
# help: did you mean `float32`?
    pass

# ----- undefined_extent
@T.prim_func
def main(A: T.Buffer((k,), "float32")):
# error[LP116] 23-23: `k` is not defined here
    pass

# ----- negative_extent
@T.prim_func
def main(A: T.Buffer((-4,), "float32")):
# error[LP123] 23-24: an extent below zero: -4
    pass

# ----- float_extent
@T.prim_func
def main(A: T.Buffer((1.5,), "float32")):
# error[LP119] 23-25: an extent has type float32, an integer is expected
    pass

# ----- unknown_buffer_argument
@T.prim_func
def main(A: T.Buffer((16,), "float32", scop="local")):
# error[LP120] 40-51: T.Buffer has no argument `scop`
# help: did you mean `scope`?
    pass

# ----- separator_out_of_range
@T.prim_func
def main(A: T.Buffer((16, 4), "float32", axis_separators=[2])):
# error[LP127] 10-61: axis separators [1] are out of range for 2 axes: each names an axis before the last
    pass

# ----- match_of_nothing
@T.prim_func
def main(n: T.int32):
    A = T.match_buffer(n, (16,))
    # error[LP127] 24-24: a handle parameter of the function is expected

# ----- match_twice
@T.prim_func
def main(a: T.handle):
    A = T.match_buffer(a, (16,))
    B = T.match_buffer(a, (16,))
    # error[LP127] 24-24: `a` has its buffer already

# ----- undefined_name
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for i in range(16):
        B[i] = A[i, jj]
        # error[LP116] 21-22: `jj` is not defined here

# ----- misspelled_name
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for row_index in range(16):
        B[row_indx] = T.float32(0)
        # error[LP116] 11-18: `row_indx` is not defined here
        # help: did you mean `row_index`?

# ----- misspelled_intrinsic
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[0] = T.mx(B[1], B[2])
    # error[LP118] 12-15: `T.mx` is not known
    # help: did you mean `T.max`?

# ----- misspelled_in_opaque
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    T.call_exten('int32', 'f')
    # error[LP118] 5-16: `T.call_exten` is not known
    # help: did you mean `T.call_extern`?

# ----- unknown_intrinsic
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    T.launch_missiles(B.data)
    # error[LP118] 5-21: `T.launch_missiles` is not known

# ----- unknown_loop
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for i in T.serail(16):
    # error[LP118] 14-21: a loop over `T.serail` is not known
    # help: did you mean `T.serial`?
        pass

# ----- unknown_axis
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    for i, j in T.grid(16, 14):
        with T.block("X"):
            vi = T.axis.spacial(16, i)
            # error[LP118] 18-31: `T.axis.spacial` is not known
            # help: did you mean `T.axis.spatial`?
            B[vi] = T.float32(0)

# ----- unknown_with
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    with T.blok('X'):
    # error[LP118] 10-15: `with T.blok` is not known
    # help: did you mean `T.block`?
        pass

# ----- plain_python_call
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    print(B[0])
    # error[LP118] 5-9: `print` is not known

# ----- wrong_rank
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[0, 0] = T.float32(0)
    # error[LP127] 5-26: B has 1 axis and is indexed by 2

# ----- float_index
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[A[0, 0]] = T.float32(0)
    # error[LP127] 7-13: index 0 of B has type float32, an integer is expected

# ----- vector_index_not_last
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    A[T.ramp(0, 1, 4), 0] = T.broadcast(T.float32(0), 4)
    # error[LP127] 5-56: index 0 of A has lanes; only the last one may

# ----- buffer_without_indices
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[0] = B + 1
    # error[LP127] 12-12: the buffer `B` is used without indices

# ----- scalar_indexed
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[0] = n[0]
    # error[LP127] 12-12: `n` is a variable of type int32, not a buffer

# ----- store_of_a_pointer
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[0] = A.data
    # error[LP127] 5-17: a handle stored to B, which takes float32 here

# ----- store_past_its_type
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    D = T.decl_buffer((4,), 'int8')
    D[0] = 300
    # error[LP115] 12-14: 300 does not fit int8

# ----- store_of_wrong_lanes
@T.prim_func
def main(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    B[0] = T.broadcast(T.float32(0), 4)
    # error[LP127] 5-39: a float32x4 stored to B, which takes float32 here
