"""The compute front end as `from layoutproof import te`.

Loaded on demand, since it imports the schedule and, with it, the solvers.

A number has the type of the expression beside it: `H[i] * 0.1` is a float16 where H is one, and a float32 in TVM. `==`
compares two expressions and is True or False: comparisons are written `te.equal(a, b)`.
"""

from layoutproof.ir.expr import Expr, Var, equal
from layoutproof.ir.index_map import AXIS_SEPARATOR
from layoutproof.ir.intrinsics import undef
from layoutproof.lowering.te.compute import compute, max, min, prod, sum
from layoutproof.lowering.te.create_prim_func import create_prim_func
from layoutproof.lowering.te.stages import ComputeSchedule, Stage, create_schedule
from layoutproof.lowering.te.tensor import Axis, Tensor, placeholder, reduce_axis, var
from layoutproof.lowering.te.value_functions import (
    abs,
    all,
    any,
    cast,
    ceil,
    const,
    cos,
    erf,
    exp,
    floor,
    if_then_else,
    infinity,
    log,
    logical_not,
    max_value,
    min_value,
    power,
    round,
    rsqrt,
    select,
    sigmoid,
    sin,
    sqrt,
    tanh,
    truncdiv,
    truncmod,
)

__all__ = [
    "AXIS_SEPARATOR",
    "Axis",
    "ComputeSchedule",
    "Expr",
    "Stage",
    "Tensor",
    "Var",
    "abs",
    "all",
    "any",
    "cast",
    "ceil",
    "compute",
    "const",
    "cos",
    "create_prim_func",
    "create_schedule",
    "equal",
    "erf",
    "exp",
    "floor",
    "if_then_else",
    "infinity",
    "log",
    "logical_not",
    "max",
    "max_value",
    "min",
    "min_value",
    "placeholder",
    "power",
    "prod",
    "reduce_axis",
    "round",
    "rsqrt",
    "select",
    "sigmoid",
    "sin",
    "sqrt",
    "sum",
    "tanh",
    "truncdiv",
    "truncmod",
    "undef",
    "var",
]
