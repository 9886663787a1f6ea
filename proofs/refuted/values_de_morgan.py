# about: `not a and not b` is rewritten as `not a or not b`, as a document of the field has it: 6 of 72 points change
# clause: values
# expect: refuted
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(B: T.Buffer((3, 8, 3), "int32")):
    T.func_attr({"tirx.noalias": True})
    for io, ii, fi in T.grid(3, 8, 3):
        B[io, ii, fi] = T.Select(not (io == 0 and ii < 2) and not (io == 0 and ii + fi < 2) and not (io == 2 and ii >= 2) and not (io == 2 and ii + fi >= 4), 1, 0)


@T.prim_func(s_tir=True)
def after(B: T.Buffer((3, 8, 3), "int32")):
    T.func_attr({"tirx.noalias": True})
    for io, ii, fi in T.grid(3, 8, 3):
        B[io, ii, fi] = T.Select((io == 0 and (ii >= 2 or ii + fi >= 2)) or io == 1 or (io == 2 and (ii < 2 or ii + fi < 4)), 1, 0)
