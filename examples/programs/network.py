# A graph of layoutproof: functions in TVM's script syntax, then the steps that call them.

@T.prim_func(s_tir=True)
def conv2d(X: T.Buffer((1, 4, 56, 56), "float32"), W: T.Buffer((4, 4, 1, 1), "float32"), Y: T.Buffer((1, 4, 56, 56), "float32")):
    T.func_attr({"tir.noalias": True})
    for i0, i1, i2, i3, i4, i5, i6 in T.grid(1, 4, 56, 56, 4, 1, 1):
        with T.sblock("conv2d"):
            n, k, y, x, c, r, s = T.axis.remap("SSSSRRR", [i0, i1, i2, i3, i4, i5, i6])
            with T.init():
                Y[n, k, y, x] = T.float32(0.0)
            Y[n, k, y, x] = Y[n, k, y, x] + X[n, c, y + r, x + s] * W[k, c, r, s]

@T.prim_func(s_tir=True)
def add(A: T.Buffer((1, 4, 56, 56), "float32"), B: T.Buffer((4, 1, 1), "float32"), Y: T.Buffer((1, 4, 56, 56), "float32")):
    T.func_attr({"tir.noalias": True})
    for i0, i1, i2, i3 in T.grid(1, 4, 56, 56):
        with T.sblock("add"):
            v0, v1, v2, v3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
            Y[v0, v1, v2, v3] = A[v0, v1, v2, v3] + B[v1, 0, 0]

@T.prim_func(s_tir=True)
def relu(X: T.Buffer((1, 4, 56, 56), "float32"), Y: T.Buffer((1, 4, 56, 56), "float32")):
    T.func_attr({"tir.noalias": True})
    for i0, i1, i2, i3 in T.grid(1, 4, 56, 56):
        with T.sblock("relu"):
            v0, v1, v2, v3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
            Y[v0, v1, v2, v3] = T.max(X[v0, v1, v2, v3], T.float32(0.0))

@T.prim_func(s_tir=True)
def max_pool2d(X: T.Buffer((1, 4, 56, 56), "float32"), Y: T.Buffer((1, 4, 28, 28), "float32")):
    T.func_attr({"tir.noalias": True})
    for i0, i1, i2, i3, i4, i5 in T.grid(1, 4, 28, 28, 2, 2):
        with T.sblock("max_pool2d"):
            n, c, y, x, r, s = T.axis.remap("SSSSRR", [i0, i1, i2, i3, i4, i5])
            with T.init():
                Y[n, c, y, x] = T.min_value("float32")
            Y[n, c, y, x] = T.max(Y[n, c, y, x], X[n, c, y * 2 + r, x * 2 + s])

@T.prim_func(s_tir=True)
def conv2d_1(X: T.Buffer((1, 4, 28, 28), "float32"), W: T.Buffer((4, 4, 1, 1), "float32"), Y: T.Buffer((1, 4, 28, 28), "float32")):
    T.func_attr({"tir.noalias": True})
    for i0, i1, i2, i3, i4, i5, i6 in T.grid(1, 4, 28, 28, 4, 1, 1):
        with T.sblock("conv2d"):
            n, k, y, x, c, r, s = T.axis.remap("SSSSRRR", [i0, i1, i2, i3, i4, i5, i6])
            with T.init():
                Y[n, k, y, x] = T.float32(0.0)
            Y[n, k, y, x] = Y[n, k, y, x] + X[n, c, y + r, x + s] * W[k, c, r, s]

@T.prim_func(s_tir=True)
def add_1(A: T.Buffer((1, 4, 28, 28), "float32"), B: T.Buffer((1, 4, 28, 28), "float32"), Y: T.Buffer((1, 4, 28, 28), "float32")):
    T.func_attr({"tir.noalias": True})
    for i0, i1, i2, i3 in T.grid(1, 4, 28, 28):
        with T.sblock("add"):
            v0, v1, v2, v3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
            Y[v0, v1, v2, v3] = A[v0, v1, v2, v3] + B[v0, v1, v2, v3]

@G.graph
def network(image: G.Tensor((1, 4, 56, 56), "float32")):
    weight = G.constant((4, 4, 1, 1), "float32", data=[0.25, -0.25, 0.75, 0.0, -0.5, 0.25, 1.25, 1.0, -0.75, -1.25, -0.5, 0.0, -2.25, -0.25, -1.25, -0.75])
    weight_1 = G.constant((4, 1, 1), "float32", data=[-0.5, -0.25, 0.5, 1.0])
    weight_2 = G.constant((4, 4, 1, 1), "float32", data=[-0.25, 1.25, -0.75, 0.25, 1.0, 0.0, -0.75, -1.0, -0.5, 0.25, -1.0, -0.25, -0.25, 0.5, 0.25, 0.25])
    conv2d = conv2d(image, weight)
    add = add(conv2d, weight_1)
    relu = relu(add)
    max_pool2d = max_pool2d(relu)
    conv2d_1 = conv2d_1(max_pool2d, weight_2)
    add_1 = add_1(max_pool2d, conv2d_1)
    return add_1
