# about: additions of padding that is zero are dropped, though the caller's accumulator may be -0.0, which the first of them turns into +0.0
# clause: no-ops
# expect: refuted
# strictness: ieee
# theta: 0 -> 0: lambda i, j: [i, j]

@T.prim_func
def before(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"tir.noalias": True})
    for p, q in T.grid(4, 4):
        T.evaluate(T.assume(q < 3 or A[p, q] == T.float32(0)))
    for i, j in T.grid(4, 4):
        B[i] = B[i] + A[i, j]


@T.prim_func
def after(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"tir.noalias": True})
    for p, q in T.grid(4, 4):
        T.evaluate(T.assume(q < 3 or A[p, q] == T.float32(0)))
    for i, j in T.grid(4, 3):
        B[i] = B[i] + A[i, j]
