"""Cells of a study: one operator, type, shape, layout, policy, pad value and strictness each; pad values by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import DType
from layoutproof.studies import codes
from layoutproof.studies.layouts import layout_named
from layoutproof.studies.operators import Operator
from layoutproof.studies.policies import Loads, Policy, policy_named

PadText = str | int | float | None

PAD_VALUES: tuple[str, ...] = ("0", "-0", "1", "lowest", "highest", "-inf", "inf", "nan", "7", "ones")
"""`lowest` and `highest` are the ends of the finite values; `ones` has all bits set; 7 is the zero point of studies."""


def pad_value(name: str, dtype: str) -> PadText:
    """A value by its name for a type; None where the type has none. Raises LayoutproofError for an unknown name."""
    if name not in PAD_VALUES:
        raise error(codes.STUDY_FILE, f"there is no pad value {name!r}", help=f"pad values are {', '.join(PAD_VALUES)}")
    kind = DType.parse(dtype)
    return _float(name, kind) if kind.is_float else _integer(name, kind)


def _float(name: str, dtype: DType) -> PadText:
    found: Mapping[str, PadText] = {
        "0": 0.0,
        "-0": -0.0,
        "1": 1.0,
        "7": 7.0,
        "lowest": f'T.min_value("{dtype}")',
        "highest": f'T.max_value("{dtype}")',
        "-inf": f'T.{dtype}("-inf")',
        "inf": f'T.{dtype}("inf")',
        "nan": f'T.{dtype}("nan")',
    }
    return found.get(name)


def _integer(name: str, dtype: DType) -> PadText:
    found = {"0": 0, "1": 1, "7": 7, "lowest": dtype.min_int, "highest": dtype.max_int}
    return {**found, "ones": -1}.get(name) if dtype.min_int < 0 else found.get(name)


NO_VALUE = "-"


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """The coordinates of a cell, each by its name."""

    operator: str
    dtype: str
    shape: str
    layout: str
    policy: str
    value: str
    strictness: str

    @property
    def key(self) -> str:
        """The coordinates as one text: what a claim cites and a page anchors."""
        return "/".join(asdict(self).values())

    @staticmethod
    def of(data: Mapping[str, Any]) -> Cell:
        """The cell of a record."""
        return Cell(**{name: str(data[name]) for name in Cell.__slots__})


@dataclass(frozen=True, slots=True)
class Grid:
    """The dimensions of a study, each a list; `operators` by name."""

    operators: Mapping[str, Operator]
    dtypes: tuple[str, ...]
    shapes: tuple[str, ...]
    layouts: tuple[str, ...]
    policies: tuple[str, ...]
    values: tuple[str, ...]
    strictness: tuple[str, ...]

    def cells(self) -> Iterator[Cell]:
        """Every cell that there is, in a fixed order: not those of a type that the operator or the value does not
        have.
        """
        for operator, dtype in product(self.operators.values(), self.dtypes):
            if dtype not in operator.types:
                continue
            for shape, layout, policy in product(self.shapes, self.layouts, map(policy_named, self.policies)):
                for value in self._values(policy, dtype):
                    for strictness in self.strictness:
                        yield Cell(operator.name, dtype, shape, layout, policy.name, value, strictness)

    def _values(self, policy: Policy, dtype: str) -> Iterator[str]:
        """The pad values of a policy that the type has, each number once."""
        if not policy.takes_value:
            if policy.value is None or pad_value(policy.value, dtype) is not None:
                yield policy.value or NO_VALUE
            return
        seen = set[str]()
        for name in self.values:
            value = repr(pad_value(name, dtype))
            if value != "None" and value not in seen:
                seen.add(value)
                yield name


def is_applicable(operator: Operator, cell: Cell) -> str | None:
    """Why a cell asks nothing, or None: the layout or the policy has no place in the operator."""
    policy, layout = policy_named(cell.policy), layout_named(cell.layout)
    letters = "".join(operator.buffers.values())
    if not set(letters) & set(layout.axes):
        return "no axis of the operator is padded by this layout"
    if policy.rows is not None and "r" not in letters:
        return "the operator has no second axis to pad"
    if policy.loads is Loads.COPIED and operator.halo:
        return "a copy of the halo is a convolution of its own"
    return None
