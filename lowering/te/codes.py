"""The codes of errors in compute definitions and their stages, with their sentences."""

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
    TE_SHAPE: "A tensor's shape and a reduction's range are integers, none negative, or expressions of integer "
    "variables.",
    TE_DTYPE: "A tensor's elements have one of the data types, such as float32, int8 or bool.",
    TE_NAME: "A tensor, a variable and an axis have names that a program can use, and tensors of a program have unique "
    "ones.",
    TE_INDEX: "A tensor is read at one element, with one integer index for each axis.",
    TE_FUNCTION: "A compute takes a function of as many named indices as its shape has axes, or of `*indices`.",
    TE_VALUE: "What a compute's function returns is the value of one element: an expression, a number, or a reduction "
    "of one.",
    TE_REDUCTION: "A reduction runs over axes made by reduce_axis, and is the whole value of its compute.",
    TE_PARAMETERS: "The parameters of a function are tensors and variables, and include every input of the "
    "computation.",
    TE_STAGE: "A stage is scheduled by its present axes, and through tensors that belong to the schedule.",
    TE_PADDING: "The map leaves cells without an element, and loops over all cells of the transformed tensor access "
    "them.",
}
