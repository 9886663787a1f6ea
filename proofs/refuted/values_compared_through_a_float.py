# about: a product of what a float was rounded to wraps, and is compared as an integer once a formula stands for it
# clause: values
# expect: refuted
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(n: T.int32, B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        if i < n:
            if T.Cast("int32", T.floor(T.Cast("float32", i) * T.float32(0.5))) * 1000000000 >= 0:
                B[i] = 1


@T.prim_func(s_tir=True)
def after(n: T.int32, B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        if i < n:
            B[i] = 1
