# about: softmax by rows: the exponentials are computed anew where they are used
# expect: proved
# strictness: ieee
# theta: 0 -> 0: lambda i: [i, 0]
# theta: 1 -> 1: lambda i, k: [i, k]
# theta: 2 -> 3: lambda i: [i, 0]
# theta: 3 -> 4: lambda i, k: [i, k]
# theta: 4 -> 5: lambda i, k: [i, k]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 30), "float32"), B: T.Buffer((16, 30), "float32")):
    T.func_attr({"tirx.noalias": True})
    M = T.alloc_buffer((16,), "float32")
    E = T.alloc_buffer((16, 30), "float32")
    S = T.alloc_buffer((16,), "float32")
    for i, k in T.grid(16, 30):
        with T.sblock("M"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[vi] = T.min_value("float32")
            M[vi] = T.max(M[vi], A[vi, vk])
    for i, k in T.grid(16, 30):
        E[i, k] = T.exp(A[i, k] - M[i])
    for i, k in T.grid(16, 30):
        with T.sblock("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + E[vi, vk]
    for i, k in T.grid(16, 30):
        B[i, k] = E[i, k] / S[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 30), "float32"), B: T.Buffer((16, 30), "float32")):
    T.func_attr({"tirx.noalias": True})
    m = T.alloc_buffer((1,), "float32", scope="local")
    s = T.alloc_buffer((1,), "float32", scope="local")
    for i in range(16):
        m[0] = T.min_value("float32")
        for k in range(30):
            m[0] = T.max(m[0], A[i, k])
        s[0] = T.float32(0)
        for k in range(30):
            s[0] = s[0] + T.exp(A[i, k] - m[0])
        for k in range(30):
            B[i, k] = T.exp(A[i, k] - m[0]) / s[0]
