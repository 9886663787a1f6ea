"""The attribute `layoutproof.layout`: how the cells of a buffer came to their places, and which of them are padding.

It maps the name of a data variable to a record: the logical shape, then one step for each layout transform, in order:
the index map, the box after it, and the contract of the padding that it introduces (None: no contract, no access
allowed; `undef`: any access, any value; else its value). A text of the program has it as plain values
(`ir/script/index_maps.py`), extents being integers or texts over the function's symbols:

    {"A_data": {"logical_shape": [14], "steps": [{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4],
     "contract": "T.float32(0)"}]}}

Inputs of maps and symbols are 32 bits wide; `IndexMap.with_symbols` and `retype` give them a function's own types.
Contracts, whose values are data, keep their types, and are equal where their texts are. The record states, the
program's text proves. Cells are numbered row-major in the last box, so flattening, with separators or without, leaves
the record as it is.

Source: TVM's RFC `layout-transformation-padding-roadmap`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING

from layoutproof.ir import codes
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import INT32, DType
from layoutproof.ir.expr import Expr, IntImm, Var, require
from layoutproof.ir.index_map import IndexMap, index_map_text, narrowed, retype
from layoutproof.ir.intrinsics import Undef
from layoutproof.ir.primfunc import LAYOUT, PrimFunc
from layoutproof.ir.stmt import Attributes, MeantValue
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import free_variables, substitute

if TYPE_CHECKING:
    pass
else:
    pass


class Cell(IntEnum):
    """What a physical cell is."""

    LOGICAL = 0
    PAD_VALUE = 1
    PAD_UNDEF = 2
    PAD_FORBIDDEN = 3


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Contract:
    """What padding holds: `value` over the physical index `inputs`, of the buffer's type, or `undef`.

    Two are equal where they are printed alike. Raises TypeError where a symbol of the value has the name of an input,
    which no text tells.
    """

    inputs: tuple[Var, ...]
    value: Expr
    text: str = field(init=False)

    def __post_init__(self) -> None:
        names = {v.name for v in self.inputs}
        used = [v for v in free_variables(self.value) if v.name in names]
        require(all(v in self.inputs for v in used), "a symbol in a pad value has the name of one of its indices")
        text = "undef" if self.is_undef else expr_text(self.value)
        object.__setattr__(self, "text", f"lambda {', '.join(v.name for v in self.inputs)}: {text}" if used else text)

    @staticmethod
    def undef(dtype: DType) -> Contract:
        """The contract that padding may hold anything."""
        return Contract((), Undef(dtype))

    @property
    def is_undef(self) -> bool:
        """Whether the padding may hold anything."""
        return isinstance(self.value, Undef)

    def at(self, indices: Sequence[Expr]) -> Expr:
        """The value of the cell at a physical index."""
        return substitute(self.value, dict(zip(self.inputs, indices, strict=True))) if self.inputs else self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Contract) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Contract({self.text!r})"


@dataclass(frozen=True, slots=True)
class LayoutStep:
    """One transform: its map, the `shape` of the box after it, the contract of the padding that it introduced."""

    index_map: IndexMap
    shape: tuple[Expr, ...]
    contract: Contract | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "index_map", self.index_map.narrowed())
        object.__setattr__(self, "shape", tuple(map(narrowed, self.shape)))

    @property
    def map_text(self) -> str:
        """The index map as it is printed."""
        return index_map_text(self.index_map)

    @property
    def padding(self) -> Cell:
        """What the step's padding is."""
        if self.contract is None:
            return Cell.PAD_FORBIDDEN
        return Cell.PAD_UNDEF if self.contract.is_undef else Cell.PAD_VALUE


@dataclass(frozen=True, slots=True)
class LayoutRecord(MeantValue):
    """The layout history of one data variable."""

    logical_shape: tuple[Expr, ...]
    steps: tuple[LayoutStep, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "logical_shape", tuple(map(narrowed, self.logical_shape)))

    @property
    def shape(self) -> tuple[Expr, ...]:
        """The box of the last step."""
        return self.steps[-1].shape if self.steps else self.logical_shape

    def with_step(self, step: LayoutStep) -> LayoutRecord:
        """The record after one more transform."""
        return LayoutRecord(self.logical_shape, (*self.steps, step))

    def check_names(self, symbols: Iterable[str]) -> None:
        """Raise LayoutproofError where the record uses another name than those of these symbols."""
        known = set(symbols)
        for shape in (self.logical_shape, *(step.shape for step in self.steps)):
            check_known(shape, known)
        for step in self.steps:
            check_known(step.index_map.outputs, known | {v.name for v in step.index_map.inputs})

    def plain(self) -> Attributes:
        """The record as plain values."""
        steps = [
            {
                "index_map": s.map_text,
                "shape": plain_shape(s.shape),
                "contract": None if s.contract is None else s.contract.text,
            }
            for s in self.steps
        ]
        return Attributes({"logical_shape": plain_shape(self.logical_shape), "steps": steps})


def boxed(buffer: Buffer, shape: Iterable[Expr], symbols: Iterable[Var]) -> Buffer:
    """A buffer as a step with this box left it: constants as wide as its widest extent, symbols of their own types."""
    wide = max((extent.dtype for extent in buffer.shape), key=lambda dtype: dtype.bits, default=INT32)
    types = {v.name: v.dtype for v in symbols}
    extents = tuple(
        IntImm(e.value, wide) if isinstance(e, IntImm) and e.dtype.bits <= wide.bits else retype(e, types)
        for e in map(narrowed, shape)
    )
    return replace(buffer, shape=extents, strides=(), axis_separators=())


def plain_shape(shape: Sequence[Expr]) -> list[int | str]:
    """Extents as integers, and as texts where they are none."""
    return [e.value if isinstance(e, IntImm) else expr_text(e, Style.PLAIN) for e in shape]


def layout_records(func: PrimFunc) -> dict[str, LayoutRecord]:
    """The records of a function by data variable. Raises LayoutproofError if the attribute is malformed."""
    value = func.attrs.get(LAYOUT)
    if value is None:
        return {}
    if not isinstance(value, Attributes):
        raise error(codes.LAYOUT_RECORD, f"{LAYOUT} maps data variables to layout records")
    found: dict[str, LayoutRecord] = {}
    for name, record in value.items():
        if not isinstance(record, LayoutRecord):
            raise error(
                codes.LAYOUT_RECORD,
                f"the layout record of {name}: a LayoutRecord is expected, not {type(record).__name__}",
            )
        found[name] = record
    return found


def with_record(func: PrimFunc, data: str, record: LayoutRecord) -> Attributes:
    """The function's attributes with the record of one data variable set."""
    present = func.attrs.get(LAYOUT)
    records = present if isinstance(present, Attributes) else Attributes()
    return func.attrs.with_value(LAYOUT, records.with_value(data, record))


def check_known(exprs: Sequence[Expr], known: Collection[str]) -> None:
    """Raise LayoutproofError for a variable that is none of these."""
    for variable in (v for expr in exprs for v in free_variables(expr)):
        if variable.name not in known:
            raise error(codes.LAYOUT_RECORD, f"nothing says what `{variable.name}` is, which a layout record uses")
