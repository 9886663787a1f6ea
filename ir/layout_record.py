"""The attribute `layoutproof.layout`: how the cells of a buffer came to lie where they do, and which of them are padding.

A function's attribute maps the name of a data variable to a record: the logical shape, then one step for each layout transform,
in order of application: the index map's text, the box after it, and the contract of the padding that the step introduced
(None: no contract, nobody may touch it; `undef`: may be read and written, holds anything; else the text of its value). As plain
attribute values, extents being integers or texts over the function's symbols:

    {"A_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": "T.float32(0)"}]}}

The record states, the program's text proves; it survives every pass, printing and reading. Cells are numbered row-major in the
last box, so flattening, with separators or without, leaves it as it is. Source: the seed `layout-transformation-padding-roadmap`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir import codes
from layoutproof.ir.attributes import Attributes, AttrValue
from layoutproof.ir.diagnostic import LayoutproofError, counted, error
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, IntImm, Var
from layoutproof.ir.map_text import parse_index_map, parse_integer
from layoutproof.ir.primfunc import LAYOUT, PrimFunc
from layoutproof.ir.text import expr_text

UNDEF_CONTRACT = "undef"

Extent = int | str


class Cell(IntEnum):
    """What a physical cell is."""

    LOGICAL = 0
    PAD_VALUE = 1
    PAD_UNDEF = 2
    PAD_FORBIDDEN = 3


@dataclass(frozen=True, slots=True)
class LayoutStep:
    """One transform: `index_map` as lambda text, `shape` of the box after it, `contract` of the padding it introduced."""

    index_map: str
    shape: tuple[Extent, ...]
    contract: str | None = None

    @property
    def padding(self) -> Cell:
        """What the step's padding is."""
        if self.contract is None:
            return Cell.PAD_FORBIDDEN
        return Cell.PAD_UNDEF if self.contract == UNDEF_CONTRACT else Cell.PAD_VALUE


@dataclass(frozen=True, slots=True)
class LayoutRecord:
    """The layout history of one data variable."""

    logical_shape: tuple[Extent, ...]
    steps: tuple[LayoutStep, ...] = ()

    @property
    def shape(self) -> tuple[Extent, ...]:
        """The box of the last step."""
        return self.steps[-1].shape if self.steps else self.logical_shape

    def with_step(self, step: LayoutStep) -> LayoutRecord:
        """The record after one more transform."""
        return LayoutRecord(self.logical_shape, (*self.steps, step))

    def to_attribute(self) -> Attributes:
        """The plain value that stands in the attribute."""
        steps = [{"index_map": s.index_map, "shape": s.shape, "contract": s.contract} for s in self.steps]
        return Attributes({"logical_shape": self.logical_shape, "steps": steps})

    @staticmethod
    def from_attribute(name: str, value: AttrValue) -> LayoutRecord:
        """Read what `to_attribute` wrote. Raises LayoutproofError for anything else; `name` is the data variable's."""
        if not isinstance(value, Attributes) or set(value) != {"logical_shape", "steps"}:
            raise _bad(name, "a record has the keys logical_shape and steps")
        steps = value["steps"]
        if not isinstance(steps, tuple):
            raise _bad(name, "steps is a list")
        return LayoutRecord(_extents(name, value["logical_shape"]), tuple(_step(name, s) for s in steps))


def _step(name: str, value: AttrValue) -> LayoutStep:
    if not isinstance(value, Attributes) or set(value) != {"index_map", "shape", "contract"}:
        raise _bad(name, "a step has the keys index_map, shape and contract")
    index_map, contract = value["index_map"], value["contract"]
    if not isinstance(index_map, str):
        raise _bad(name, "an index map is the text of a lambda")
    if not (contract is None or isinstance(contract, str)):
        raise _bad(name, "a contract is None or a text")
    return LayoutStep(index_map, _extents(name, value["shape"]), contract)


def _extents(name: str, value: AttrValue) -> tuple[Extent, ...]:
    if not isinstance(value, tuple):
        raise _bad(name, "a shape is a list")
    return tuple(_extent(name, e) for e in value)


def _extent(name: str, value: AttrValue) -> Extent:
    if isinstance(value, IntImm):
        return value.value
    if isinstance(value, Expr):
        return expr_text(value, "plain")
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise _bad(name, f"an extent is an integer or a text, not {value!r}")
    return value


def extent_of(value: Expr) -> Extent:
    """A shape's extent as a record holds it."""
    return _extent("", value)


def _bad(name: str, message: str) -> LayoutproofError:
    return error(codes.LAYOUT_RECORD, f"the layout record of {name}: {message}")


def layout_records(func: PrimFunc) -> dict[str, LayoutRecord]:
    """The records of a function by data variable; empty without the attribute. Raises LayoutproofError for a malformed one."""
    value = func.attrs.get(LAYOUT)
    if value is None:
        return {}
    if not isinstance(value, Attributes):
        raise error(codes.LAYOUT_RECORD, f"{LAYOUT} maps data variables to layout records")
    return {name: LayoutRecord.from_attribute(name, record) for name, record in value.items()}


def with_record(func: PrimFunc, data: str, record: LayoutRecord) -> Attributes:
    """The function's attributes with the record of one data variable set."""
    present = func.attrs.get(LAYOUT)
    records = present if isinstance(present, Attributes) else Attributes()
    return func.attrs.with_value(LAYOUT, records.with_value(data, record.to_attribute()))


def cells_of(record: LayoutRecord, symbols: Mapping[str, int]) -> NDArray[np.uint8]:
    """What each cell of the last box is (`Cell`), as an array of its shape.

    Each padding cell has the contract of the step that introduced it. Raises LayoutproofError for a map that does not parse,
    does not fit its shape or puts two cells in one place.
    """
    shape = extents_for(record.logical_shape, symbols)
    cells = np.full(shape, Cell.LOGICAL, dtype=np.uint8)
    for step in record.steps:
        index_map = parse_index_map(step.index_map, symbols=tuple(symbols))
        box = extents_for(step.shape, symbols)
        if len(index_map.inputs) != cells.ndim or index_map.rank != len(box):
            raise error(codes.LAYOUT_RECORD, f"{step.index_map} does not lead from {cells.ndim} to {counted(len(box), 'axis', 'axes')}")
        values = index_map.output_values(cells.shape, symbols)
        if cells.size and any(int(v.min()) < 0 or int(v.max()) >= extent for v, extent in zip(values, box, strict=True)):
            raise error(codes.LAYOUT_RECORD, f"{step.index_map} leaves the box {list(box)}")
        positions = index_map.flat_positions(cells.shape, box, symbols).reshape(-1)
        taken = np.zeros(int(np.prod(box, dtype=np.int64)), dtype=np.bool_)
        taken[positions] = True
        if np.count_nonzero(taken) != positions.size:
            raise error(codes.LAYOUT_RECORD, f"{step.index_map} is not injective on {list(cells.shape)}")
        moved = np.full(taken.size, step.padding, dtype=np.uint8)
        moved[positions] = cells.reshape(-1)
        cells = moved.reshape(box)
    return cells


def extents_for(shape: Sequence[Extent], symbols: Mapping[str, int]) -> tuple[int, ...]:
    """The extents for values of the symbols."""
    variables = {name: Var(name) for name in symbols}
    return tuple(e if isinstance(e, int) else int(evaluate(parse_integer(e, variables), symbols)) for e in shape)


def padding_cells(func: PrimFunc, symbols: Mapping[str, int]) -> dict[str, NDArray[np.uint8]]:
    """`cells_of` for every record of a function, by data variable."""
    return {name: cells_of(record, symbols) for name, record in layout_records(func).items()}
