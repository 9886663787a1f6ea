# Expressions that are not hoisted.

# ----- let_inside
# step: hoist_expression(flags=('if_else_stmt', 'if_else_expr', 'boolean_expression'))
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), C: T.Buffer((4, 4), "int32"), B_n: T.int32):
    for i, j in T.grid(4, 4):
        x: T.int32 = i + 1
        if x < 3:
        # error[LP388] 9-6:23: the condition `x < 3` depends on x, which is bound inside loop j
        # help: with the flag required_by_conditional the let comes along
            C[i, j] = 0

# ----- unknown_flag
# step: hoist_expression(flags=('if_else',))
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), C: T.Buffer((4, 4), "int32"), B_n: T.int32):
    for i, j in T.grid(4, 4):
        if i < 3:
            C[i, j] = 0
            # error[LP387]: hoist_expression has no flag 'if_else'
            # help: its flags are if_else_stmt, if_else_expr, boolean_expression, using_block_var, required_by_conditional, let_stmt

# ----- flags_are_names
# step: hoist_expression(flags=(1, 2))
# error[LP313]: hoist_expression, argument 'flags' is (1, 2), a list of names, none twice is expected

# ----- unknown_block
# step: hoist_expression(block='frist')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), C: T.Buffer((4, 4), "int32"), B_n: T.int32):
    for i, j in T.grid(4, 4):
        with T.sblock("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vj])
            T.writes(C[vi, vj])
            C[vi, vj] = T.if_then_else(1 <= vi, A[vj], 0)
    for i, j in T.grid(4, 4):
        with T.sblock("second"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(C[vi, vj])
            T.writes(B[vi * 4 + vj])
            B[vi * 4 + vj] = T.if_then_else(1 <= vi, C[vi, vj], 0)
            # error[LP303]: main has no block called 'frist'
            # help: did you mean 'first'?

# ----- too_many_copies
# step: hoist_expression()
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), C: T.Buffer((4, 4), "int32"), B_n: T.int32):
    for i in range(4):
    # error[LP389] 5-12:44: hoisting every condition would write the loops of main more than 32 times
    # help: name a block, or fewer flags
        A[0] = T.if_then_else(0 < B_n, 1, 2)
        A[1] = T.if_then_else(1 < B_n, 1, 2)
        A[2] = T.if_then_else(2 < B_n, 1, 2)
        A[3] = T.if_then_else(3 < B_n, 1, 2)
        A[4] = T.if_then_else(4 < B_n, 1, 2)
        A[5] = T.if_then_else(5 < B_n, 1, 2)
        A[6] = T.if_then_else(6 < B_n, 1, 2)
        A[7] = T.if_then_else(7 < B_n, 1, 2)
        A[8] = T.if_then_else(8 < B_n, 1, 2)
