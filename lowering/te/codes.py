"""The codes of everything that can be wrong with a compute definition or its stages, with what each means."""

from __future__ import annotations

from collections.abc import Mapping

TE_SHAPE = "LP390"
TE_DTYPE = "LP391"
TE_NAME = "LP392"
TE_INDEX = "LP393"
TE_FUNCTION = "LP394"
TE_VALUE = "LP395"
TE_REDUCTION = "LP396"
TE_PARAMETERS = "LP397"
TE_STAGE = "LP398"
TE_PADDING = "LP399"

MEANINGS: Mapping[str, str] = {
    TE_SHAPE: "A tensor's shape and a reduction's range are integers, none negative, or expressions of integer variables.",
    TE_DTYPE: "A tensor's elements have one of the data types, such as float32, int8 or bool.",
    TE_NAME: "A tensor, a variable and an axis have a name that a program can use, and no two tensors of a program share one.",
    TE_INDEX: "A tensor is read at one element: as many integer indices as it has axes.",
    TE_FUNCTION: "A compute takes a function of as many named indices as its shape has axes, or of `*indices`.",
    TE_VALUE: "What a compute's function returns is the value of one element: an expression, a number, or a reduction of one.",
    TE_REDUCTION: "A reduction runs over axes made by reduce_axis, and is the whole value of its compute.",
    TE_PARAMETERS: "The parameters of a function are tensors and variables, and hold everything that the computation starts from.",
    TE_STAGE: "A stage is scheduled by the axes that it has at the time, through tensors that belong to the schedule.",
    TE_PADDING: "The map leaves cells that no element is stored in, and loops over all cells of the transformed tensor meet them.",
}
