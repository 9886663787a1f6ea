# Both sums of a row at once in registers, the mean as a value with a name, everything row by row.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 30), "float32"), g: T.Buffer((30,), "float32"), b: T.Buffer((30,), "float32"), B: T.Buffer((16, 30), "float32")):
    T.func_attr({"tirx.noalias": True})
    S = T.alloc_buffer((16,), "float32")
    Q = T.alloc_buffer((16,), "float32")
    for i, k in T.grid(16, 30):
        with T.sblock("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + A[vi, vk]
    for i, k in T.grid(16, 30):
        with T.sblock("Q"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                Q[vi] = T.float32(0)
            Q[vi] = Q[vi] + A[vi, vk] * A[vi, vk]
    for i, k in T.grid(16, 30):
        B[i, k] = (A[i, k] - S[i] / T.float32(30)) * T.rsqrt(Q[i] / T.float32(30) - S[i] / T.float32(30) * (S[i] / T.float32(30)) + T.float32(1e-5)) * g[k] + b[k]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 30), "float32"), g: T.Buffer((30,), "float32"), b: T.Buffer((30,), "float32"), B: T.Buffer((16, 30), "float32")):
    T.func_attr({"tirx.noalias": True})
    T_s = T.alloc_buffer((2,), "float32", scope="local")
    for i in range(16):
        T_s[0] = T.float32(0)
        T_s[1] = T.float32(0)
        for ko, ki in T.grid(5, 6):
            T_s[0] = T_s[0] + A[i, ko*6 + ki]
            T_s[1] = T_s[1] + A[i, ko*6 + ki] * A[i, ko*6 + ki]
        for k in range(30):
            mean: T.float32 = T_s[0] / T.float32(30)
            B[i, k] = (A[i, k] - mean) * T.rsqrt(T_s[1] / T.float32(30) - mean * mean + T.float32(1e-5)) * g[k] + b[k]
