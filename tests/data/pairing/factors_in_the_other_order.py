# Two factors with values of one form, told apart by what they come from, the other way round.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    s1 = T.alloc_buffer((16,), "float32")
    s2 = T.alloc_buffer((16,), "float32")
    t1 = T.alloc_buffer((16,), "float32")
    t2 = T.alloc_buffer((16,), "float32")
    for i in range(16):
        s1[i] = A[i] + T.float32(1)
    for i in range(16):
        t1[i] = T.exp(s1[i])
    for i in range(16):
        s2[i] = B[i] + T.float32(1)
    for i in range(16):
        t2[i] = T.exp(s2[i])
    for i in range(16):
        C[i] = t1[i] * t2[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    p1 = T.alloc_buffer((16,), "float32")
    p2 = T.alloc_buffer((16,), "float32")
    q1 = T.alloc_buffer((16,), "float32")
    q2 = T.alloc_buffer((16,), "float32")
    for i in range(16):
        p1[i] = B[i] + T.float32(1)
    for i in range(16):
        p2[i] = A[i] + T.float32(1)
    for i in range(16):
        q1[i] = T.exp(p1[i])
    for i in range(16):
        q2[i] = T.exp(p2[i])
    for i in range(16):
        C[i] = q1[i] * q2[i]
