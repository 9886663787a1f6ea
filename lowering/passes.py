"""What a pass is: options, a name, and a proposal. Passes know nothing of checking, timing or printing; the schedule owns those.

A pass is a frozen dataclass whose fields are its options, so its equality, its text in a trace and its command-line form all come
from the fields. The table of all passes is in `registry.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, ClassVar, Self

from layoutproof.ir.diagnostic import error
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.lowering import codes
from layoutproof.lowering.arguments import ArgumentKind, from_json, to_json

_KIND = "argument"


def option(kind: ArgumentKind) -> dict[str, ArgumentKind]:
    """The metadata of a dataclass field that is an option of a pass: its kind says how it stands in a trace."""
    return {_KIND: kind}


@dataclass(frozen=True)
class Pass(ABC):
    """One transform with its options. `primitive` is its name in traces, on the command line and as a method of the schedule.

    Where it `may_leave_nothing`, a schedule keeps a step that leaves a program without any store to run. Where it `moves_iterations`, the
    help of a refusal names two accesses that would change places, if there are such; where it `drops_branches`, that is about padding.
    """

    primitive: ClassVar[str]
    may_leave_nothing: ClassVar[bool] = False
    moves_iterations: ClassVar[bool] = False
    drops_branches: ClassVar[bool] = False

    @abstractmethod
    def propose(self, func: PrimFunc) -> Rewrite:
        """The rewritten function with its witness. Raises LayoutproofError where the transform does not apply; changes nothing."""

    @classmethod
    def options(cls) -> tuple[Field[Any], ...]:
        """The fields that are options, in order."""
        return tuple(f for f in fields(cls) if _KIND in f.metadata)

    def arguments(self) -> dict[str, Any]:
        """The options as plain JSON data, under the names that the schedule's method has."""
        return {f.name: to_json(f.metadata[_KIND], getattr(self, f.name)) for f in self.options()}

    def stated(self) -> list[list[Any]]:
        """What a trace says of the pass: its name and arguments, or those of the passes that it stands for."""
        return [[self.primitive, self.arguments()]]

    @classmethod
    def from_arguments(cls, arguments: dict[str, Any], place: str = "") -> Self:
        """The pass that JSON data describes.

        `place` stands in front of messages, such as "step 3: ". Raises LayoutproofError that names a missing or unknown argument or
        one of the wrong type.
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
        values = {n: from_json(known[n].metadata[_KIND], v, f"{place}{cls.primitive}, argument {n!r}") for n, v in arguments.items()}
        return cls(**values)

    def __str__(self) -> str:
        inner = ", ".join(f"{name}={value!r}" for name, value in self.arguments().items())
        return f"{self.primitive}({inner})"


def _is_required(f: Field[Any]) -> bool:
    return f.default is MISSING and f.default_factory is MISSING
