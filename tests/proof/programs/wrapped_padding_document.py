# about: padding that was meant to hold the first two elements, by the roadmap's index, holds the second twice
# expect: refuted
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((14,), "float32"), B: T.Buffer((4, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        B[i // 4, i % 4] = A[i]
    for p, q in T.grid(4, 4):
        if p == 3 and q >= 2:
            B[p, q] = B[0, q - 2]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((14,), "float32"), B: T.Buffer((4, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        B[i // 4, i % 4] = A[i]
    for p, q in T.grid(4, 4):
        if p == 3 and q >= 2:
            B[p, q] = B[0, (p - 14) % 4]
