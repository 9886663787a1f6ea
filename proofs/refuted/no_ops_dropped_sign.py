# about: dropped additions of zero make -0.0 into +0.0, whose reciprocal is looked at: a fast-math assumption on the sign of zero does not reach that far
# clause: no-ops
# expect: unknown
# strictness: nsz
# theta: 0 -> 0: lambda i, j: [i, j]
# theta: 1 -> 1: lambda k: [k]

@T.prim_func
def before(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    T.func_attr({"tir.noalias": True})
    for p, q in T.grid(4, 4):
        T.evaluate(T.assume(q < 3 or A[p, q] == T.float32(0)))
    for i, j in T.grid(4, 4):
        B[i] = B[i] + A[i, j]
    for k in range(4):
        C[k] = T.float32(1) / B[k]


@T.prim_func
def after(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    T.func_attr({"tir.noalias": True})
    for p, q in T.grid(4, 4):
        T.evaluate(T.assume(q < 3 or A[p, q] == T.float32(0)))
    for i, j in T.grid(4, 3):
        B[i] = B[i] + A[i, j]
    for k in range(4):
        C[k] = T.float32(1) / B[k]
