# Branches around padding that cannot be made.

# ----- no_padding
# step: remove_overcompute_through_branching(block='B_pad_value')
@T.prim_func(s_tir=True)
def main(A: T.Buffer((5, 4), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((4, 4), "float32")):
# error[LP371] 1-8: block B_pad_value has nothing to keep away from padding: what it touches are elements, or padding that it is there to fill
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"B_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": 'T.float32(0)'}]}}})
    for io, ii in T.grid(4, 4):
        B[io, ii] = T.float32(0)
        for f in range(3):
            B[io, ii] = B[io, ii] + A[io + (ii + f) // 4, (ii + f) % 4] * F[f]
    for io, ii in T.grid(4, 4):
        with T.sblock("B_pad_value"):
            vo, vi = T.axis.remap("SS", [io, ii])
            T.where(io == 3 and ii >= 2)
            B[vo, vi] = T.float32(0)

# ----- no_such_place
# step: remove_overcompute_through_branching(block='root', places=[0, 7])
# error[LP371]: block root touches padding at 2 places, there is no place 7
# help: 0: `B[io, ii] = 0.0` writes B, which has elements where io*4 + ii < 14; 1: `B[io, ii] = B[io, ii] + A[io + (ii + f)//4, (ii + f)%4]*F[f]` writes B, which has elements where io*4 + ii < 14

# ----- negative_place
# step: remove_overcompute_through_branching(block='root', places=[-1])
# error[LP371]: block root touches padding at 2 places, there is no place -1
# help: 0: `B[io, ii] = 0.0` writes B, which has elements where io*4 + ii < 14; 1: `B[io, ii] = B[io, ii] + A[io + (ii + f)//4, (ii + f)%4]*F[f]` writes B, which has elements where io*4 + ii < 14

# ----- places_of_another_type
# step: remove_overcompute_through_branching(block='root', places='all')
# error[LP313]: remove_overcompute_through_branching, argument 'places' is 'all', null, or a list of integers is expected

# ----- unknown_block
# step: remove_overcompute_through_branching(block='B_pad_values')
# error[LP303]: main has no block called 'B_pad_values'
# help: did you mean 'B_pad_value'?
