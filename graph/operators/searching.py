"""Where the largest or smallest element of an axis stands."""

from __future__ import annotations

from functools import cache
from typing import Final

from layoutproof.graph.model import Shape
from layoutproof.graph.operators.page import Nest, access, axis_of, function, highest, lowest, refused, variables
from layoutproof.ir.dtype import DType
from layoutproof.ir.primfunc import PrimFunc

EXTREMES: Final = ("argmax", "argmin")


@cache
def arg_extreme(kind: str, shape: Shape, axis: int, keep: bool = False, last: bool = False, dtype: str = "float32") -> PrimFunc:
    """The place along an axis, as an int64, of the largest element (`argmax`) or the smallest (`argmin`): the first, or as `last` the last.

    A NaN is taken before any number. As `keep` the axis stays, with extent 1. Raises LayoutproofError for another kind, and for an axis
    that is not there.
    """
    if kind not in EXTREMES:
        raise refused(kind, f"there is no such search; there are {', '.join(EXTREMES)}")
    along = axis_of(kind, axis, len(shape))
    whole = variables(shape)
    name = f"v{along}"
    spatial = {each: extent for each, extent in whole.items() if each != name}
    place = ["0" if each == name else each for each in whole if keep or each != name]
    largest, real = kind == "argmax", DType.parse(dtype).is_float
    x, extreme, y = access("X", list(whole)), access("E", list(spatial)), access("Y", place)
    better = ("T.maximum" if real else "T.max") if largest else ("T.minimum" if real else "T.min")
    start = lowest(dtype) if largest else highest(dtype)
    found = f"{x} == {extreme}" + (f" or {x} != {x}" if real else "")
    none, nearer = ("T.int64(-1)", "T.max") if last else ('T.max_value("int64")', "T.min")
    nests = (
        Nest("extreme", spatial, f"{extreme} = {better}({extreme}, {x})", {name: shape[along]}, f"{extreme} = {start}"),
        Nest(
            "place",
            spatial,
            f'{y} = {nearer}({y}, T.Select({found}, T.Cast("int64", {name}), {none}))',
            {name: shape[along]},
            f"{y} = {none}",
        ),
    )
    result = tuple(1 if k == along else extent for k, extent in enumerate(shape) if keep or k != along)
    outer = tuple(spatial.values())
    return function(kind, {"X": shape, "Y": result}, *nests, dtype=dtype, temporaries={"E": outer}, dtypes={"Y": "int64"})
