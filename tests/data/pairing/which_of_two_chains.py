# Two chains of values of one form, which only their inputs tell apart, in one temporary with another order.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    a0 = T.alloc_buffer((16,), "float32")
    b0 = T.alloc_buffer((16,), "float32")
    a1 = T.alloc_buffer((16,), "float32")
    b1 = T.alloc_buffer((16,), "float32")
    a2 = T.alloc_buffer((16,), "float32")
    b2 = T.alloc_buffer((16,), "float32")
    for i in range(16):
        a0[i] = A[i] * T.float32(3)
        b0[i] = B[i] * T.float32(3)
        a1[i] = T.exp(a0[i])
        b1[i] = T.exp(b0[i])
        a2[i] = T.sqrt(a1[i])
        b2[i] = T.sqrt(b1[i])
        C[i] = a2[i] + b2[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    x0 = T.alloc_buffer((2, 16), "float32")
    x1 = T.alloc_buffer((2, 16), "float32")
    x2 = T.alloc_buffer((2, 16), "float32")
    for i in range(16):
        x0[1, i] = A[i] * T.float32(3)
    for i in range(16):
        x0[0, i] = B[i] * T.float32(3)
    for j, i in T.grid(2, 16):
        x1[j, i] = T.exp(x0[j, i])
    for j, i in T.grid(2, 16):
        x2[j, i] = T.sqrt(x1[j, i])
    for i in range(16):
        C[i] = x2[0, i] + x2[1, i]
