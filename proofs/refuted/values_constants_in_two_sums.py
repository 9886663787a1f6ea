# about: a padded sum that gets numbers beside its padding has to be corrected by both
# clause: values
# expect: refuted
# theta: 0 -> 0: lambda r: [r]
# theta: 1 -> none
# theta: 2 -> 1: lambda r, c: [r, c] where c < 2
# theta: 3 -> 2: lambda r: [r]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((3, 2), "int32"), Y: T.Buffer((3,), "int32")):
    T.func_attr({"tirx.noalias": True})
    S = T.sblock_alloc_buffer((3,), "int32")
    for r in range(3):
        S[r] = 0
        for c in range(2):
            S[r] = S[r] + (1 + A[r, c])
    for r in range(3):
        Y[r] = S[r]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((3, 2), "int32"), Y: T.Buffer((3,), "int32")):
    T.func_attr({"tirx.noalias": True})
    S = T.sblock_alloc_buffer((3,), "int32")
    for r in range(3):
        S[r] = 0
        for c in range(3):
            S[r] = S[r] + 1
            S[r] = S[r] + T.if_then_else(c < 2, A[r, c], 5)
    for r in range(3):
        Y[r] = S[r] - 5
