"""What a pass is: a name, options that a trace holds as plain JSON, and a proposal.

Passes know nothing of checking, timing or printing; the schedule owns those. A pass is a frozen dataclass whose
fields are its options, so its equality, its text in a trace, its command-line form, its method of the schedule and its
documentation all come from the class (`docs/primitives.py`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar, Self

from layoutproof.ir.diagnostic import LayoutproofError, error, wrong_type
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.notations.layout_strings import try_layout_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.lowering import codes


class ArgumentKind(StrEnum):
    """What an option is; the value says it in messages."""

    NAME = "a name"
    INDEX_MAP = "the text of an index map, `lambda i, j: [...]`"
    PAD_VALUE = (
        "null, a number, or text in the script syntax such as `T.float32(0)`, `T.undef()` or `lambda io, ii: ...`"
    )
    PAD_VALUES = "null, or an object with pad values by the names of buffers"
    LAYOUT = "a layout such as `NHWC8c` or `NHWC->NCHW8c`, or the text of an index map"
    INTEGER = "an integer"
    INTEGERS = "a list of integers"
    LOOP = "the name of a loop's variable, or the loop's position from 0"
    LOOPS = "a list of names of loops' variables, or of their positions from 0, none twice"
    FACTORS = "a list of positive integers, of which one may be null"
    CHOICES = "null, or a list of integers"
    FLAG = "true or false"
    NAMES = "a list of names, none twice"


MapLike = IndexMap | Callable[..., Any] | str
"""An index map as users write it."""


def map_text(index_map: MapLike, rank: Callable[[], int]) -> str:
    """An index map as the text of a lambda; a function is called with `rank()` indices."""
    if isinstance(index_map, str):
        stated = try_layout_map(index_map)
        return index_map if stated is None else index_map_text(stated)
    return index_map_text(index_map if isinstance(index_map, IndexMap) else IndexMap.from_func(index_map, rank()))


def to_json(kind: ArgumentKind, value: Any) -> Any:
    """An option's value as JSON data."""
    if kind is ArgumentKind.PAD_VALUES:
        return None if value is None else dict(value)
    return list(value) if isinstance(value, tuple) else value


def from_json(kind: ArgumentKind, value: Any, place: str) -> Any:
    """The option that JSON data states. Raises LayoutproofError, with `place` and the expected kind, for other data."""
    if not _ACCEPTS[kind](value):
        raise wrong_argument(kind, value, place)
    if kind is ArgumentKind.INDEX_MAP:
        return map_text(value, lambda: 0)
    if kind is ArgumentKind.PAD_VALUES:
        return None if value is None else tuple(value.items())
    return tuple(value) if isinstance(value, list | tuple) else value


def wrong_argument(kind: ArgumentKind, value: Any, place: str) -> LayoutproofError:
    """The error for an option of the wrong type."""
    return wrong_type(codes.ARGUMENT_TYPE, place, value, kind.value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_integers(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(v, int) and not isinstance(v, bool) for v in value)


def _is_loop(value: Any) -> bool:
    return (isinstance(value, str) and value != "") or (isinstance(value, int) and not isinstance(value, bool))


def _is_loops(value: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) > 0
        and all(map(_is_loop, value))
        and len(set(value)) == len(value)
    )


def _is_factors(value: Any) -> bool:
    if not isinstance(value, list | tuple) or not value or sum(v is None for v in value) > 1:
        return False
    return all(v is None or (isinstance(v, int) and not isinstance(v, bool) and v > 0) for v in value)


def _is_names(value: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and all(isinstance(v, str) and v != "" for v in value)
        and len(set(value)) == len(value)
    )


_ACCEPTS: Mapping[ArgumentKind, Callable[[Any], bool]] = {
    ArgumentKind.NAME: lambda value: isinstance(value, str) and value != "",
    ArgumentKind.INDEX_MAP: lambda value: isinstance(value, str) and value.strip() != "",
    ArgumentKind.PAD_VALUE: lambda value: (
        value is None or isinstance(value, str) or isinstance(value, bool) or _is_number(value)
    ),
    ArgumentKind.PAD_VALUES: lambda value: (
        value is None
        or (
            isinstance(value, Mapping)
            and all(isinstance(name, str) and _ACCEPTS[ArgumentKind.PAD_VALUE](pad) for name, pad in value.items())
        )
    ),
    ArgumentKind.LAYOUT: lambda value: isinstance(value, str) and value.strip() != "",
    ArgumentKind.INTEGER: lambda value: isinstance(value, int) and not isinstance(value, bool),
    ArgumentKind.INTEGERS: _is_integers,
    ArgumentKind.LOOP: _is_loop,
    ArgumentKind.LOOPS: _is_loops,
    ArgumentKind.FACTORS: _is_factors,
    ArgumentKind.CHOICES: lambda value: value is None or _is_integers(value),
    ArgumentKind.FLAG: lambda value: isinstance(value, bool),
    ArgumentKind.NAMES: _is_names,
}


_KIND = "argument"


def option(kind: ArgumentKind) -> dict[str, ArgumentKind]:
    """The metadata of a dataclass field that is an option of a pass: its kind determines its form in a trace."""
    return {_KIND: kind}


def kind_of(option: Field[Any]) -> ArgumentKind:
    """The kind of a field that is an option."""
    kind: ArgumentKind = option.metadata[_KIND]
    return kind


@dataclass(frozen=True)
class Pass(ABC):
    """One transform with its options. `primitive` is its name in traces, on the command line and as a method of the
    schedule; the docstring of the class is the primitive's documentation for users.

    If it `may_leave_nothing`, a schedule keeps a step that leaves a program without any store to run. If it
    `moves_iterations`, the help of a refusal names two accesses whose order changes, if there are any; if it
    `drops_branches`, that is about padding.
    """

    primitive: ClassVar[str]
    may_leave_nothing: ClassVar[bool] = False
    moves_iterations: ClassVar[bool] = False
    drops_branches: ClassVar[bool] = False

    @abstractmethod
    def propose(self, func: PrimFunc) -> Rewrite:
        """The rewritten function with its witness; without effects. Raises LayoutproofError if the transform does not
        apply.
        """

    @classmethod
    def tries(cls, func: PrimFunc, arguments: dict[str, Any]) -> Sequence[Pass]:
        """The passes of which the schedule's method applies the first that is proved: one, with these arguments.

        A pass whose method takes more than a trace can hold, or that chooses a value itself, overrides this. Raises
        LayoutproofError as `from_arguments` does.
        """
        return (cls.from_arguments(arguments),)

    @classmethod
    def options(cls) -> tuple[Field[Any], ...]:
        """The fields that are options, in order."""
        return tuple(f for f in fields(cls) if _KIND in f.metadata)

    def arguments(self) -> dict[str, Any]:
        """The options as plain JSON data, under the names that the schedule's method has."""
        return {f.name: to_json(kind_of(f), getattr(self, f.name)) for f in self.options()}

    def stated(self) -> list[list[Any]]:
        """The pass in a trace: its name and arguments, or those of the passes that it stands for."""
        return [[self.primitive, self.arguments()]]

    @classmethod
    def from_arguments(cls, arguments: dict[str, Any], place: str = "") -> Self:
        """The pass that JSON data describes.

        `place` precedes messages, such as "step 3: ". Raises LayoutproofError that names a missing or unknown argument
        or one of the wrong type.
        """
        known = {f.name: f for f in cls.options()}
        unknown = sorted(set(arguments) - set(known))
        if unknown:
            raise error(
                codes.UNKNOWN_ARGUMENT,
                f"{place}{cls.primitive} has no argument {unknown[0]!r}",
                help=f"its arguments are {', '.join(known) or 'none'}",
            )
        missing = [name for name, f in known.items() if name not in arguments and _is_required(f)]
        if missing:
            raise error(codes.MISSING_ARGUMENT, f"{place}{cls.primitive} needs the argument {missing[0]!r}")
        values = {
            n: from_json(kind_of(known[n]), v, f"{place}{cls.primitive}, argument {n!r}") for n, v in arguments.items()
        }
        return cls(**values)

    def __str__(self) -> str:
        inner = ", ".join(f"{name}={value!r}" for name, value in self.arguments().items())
        return f"{self.primitive}({inner})"


def _is_required(f: Field[Any]) -> bool:
    return f.default is MISSING and f.default_factory is MISSING
