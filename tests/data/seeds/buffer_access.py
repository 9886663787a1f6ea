from tvm.script import tir as T


@T.prim_func
def buffer_alias(A: T.Buffer[(16,), "float"]):
    A_vector = T.buffer_decl([4], "float32x4", data=A.data)


@T.prim_func
def buffer_alloc():
    A_memory = T.allocate([16], "float32", "global")
    A = T.buffer_decl([4, 4], "float32", data=A_memory)
    for i, j in T.grid(4, 4):
        A[i, j] = 0.0


@T.prim_func
def scalar_load_from_scalar_buffer(A: T.Buffer[(64,), "float32"]):
    assert A[0].dtype == "float32"


@T.prim_func
def vector_load_from_vector_buffer(A: T.Buffer[(16,), "float32x4"]):
    assert A[0].dtype == "float32x4"


@T.prim_func
def vector_load_from_vector_buffer_alias(A: T.Buffer[(16,), "float32x4"]):
    A_vector_2 = T.buffer_decl([32], "float32x2", data=A.data)
    assert A[0].dtype == "float32x4"
    assert A_vector_2[0].dtype == "float32x2"


@T.prim_func
def vector_load_from_scalar_buffer_option1(A: T.Buffer[(64,), "float32"]):
    assert A[T.ramp(0, 1, 4)].dtype == "float32x4"


@T.prim_func
def vector_load_from_scalar_buffer_option2(A: T.Buffer[(64,), "float32"]):
    A_vector = T.buffer_decl([16], "float32x4", data=A.data)
    assert A_vector[0].dtype == "float32x4"


@T.prim_func
def scalar_load_from_vector_buffer(A: T.Buffer[(16,), "float32x4"]):
    A_scalar = T.buffer_decl([64], "float32", data=A.data)
    assert A_scalar[0].dtype == "float32"


@T.prim_func
def nd_scalar_load_from_scalar_buffer(A: T.Buffer[(64, 64,), "float32"]):
    assert A[0, 0].dtype == "float32"


@T.prim_func
def nd_vector_load_from_scalar_buffer(A: T.Buffer[(64,64), "float32"]):
    assert A[0, T.ramp(0, 1, 4)].dtype == "float32x4"


@T.prim_func
def vector_load_from_vector_buffer_by_vector(A: T.Buffer[(16,), "float32x4"]):
    assert A[T.ramp(0, 1, 2)].dtype == "float32x8"


@T.prim_func
def fn(X: T.Buffer([2, 3], "float32")):
    X_flattened = T.buffer_decl(X.data, [6], "float32")
    for i in T.grid(6):
        X_flattened[i] = X_flattened[i] * 2.0
