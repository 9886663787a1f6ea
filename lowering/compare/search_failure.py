"""The failure of a search for a witness, for people: the two statements that it had reached, and the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from layoutproof.ir.expr import TRUE
from layoutproof.ir.text import Style, expr_text
from layoutproof.lowering.compare.comparison import Furthest
from layoutproof.lowering.compare.program_model import Side
from layoutproof.verify.flow.models import NEW, OLD, RewriteModel
from layoutproof.verify.isl.instance_sets import Link
from layoutproof.verify.isl.proposing import condition_on, every_pair, functions_of, read_as_condition
from layoutproof.verify.isl.space import BudgetExceeded
from layoutproof.verify.program.statement import NotModelled, Statement

# The longest text of a relation in a message.
_LONGEST = 400


def told_relation(rewrite_model: RewriteModel, new: Statement, old: Statement, link: Link) -> str:
    """The pairs of instances of two statements: as functions of the new loops if they are, else as a condition on both
    loops.
    """
    text = (
        _as_functions(rewrite_model, new, link)
        if link.is_single_valued()
        else _as_condition(rewrite_model, new, old, link)
    )
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _as_functions(rewrite_model: RewriteModel, new: Statement, link: Link) -> str:
    space = rewrite_model.encoder_of(new.dims).space
    names = {dim.var.name: dim.var for dim in new.dims}
    head = f"[{', '.join(dim.var.name for dim in new.dims)}]"
    whole = rewrite_model.after.domain(new)
    told: list[str] = []
    for piece in functions_of(link, space, names):
        outputs = ", ".join(expr_text(each, Style.PLAIN) for each in piece.outputs)
        where = condition_on(piece.where, whole, space, names)
        told.append(f"{head} -> [{outputs}]" + (f" where {expr_text(where, Style.PLAIN)}" if where is not None else ""))
    return "; ".join(told)


def _as_condition(rewrite_model: RewriteModel, new: Statement, old: Statement, link: Link) -> str:
    mine = [dim.var.name for dim in new.dims]
    theirs = [_fresh(dim.var.name, mine) for dim in old.dims]
    among = every_pair(rewrite_model.after.domain(new), rewrite_model.before.domain(old))
    within = read_as_condition(link, among, [*mine, *theirs], rewrite_model.workspace.params)
    head = f"[{', '.join(mine)}] -> [{', '.join(theirs)}]"
    return head if within == TRUE else f"{head} where {expr_text(within, Style.PLAIN)}"


def _fresh(name: str, taken: list[str]) -> str:
    return f"{name}_before" if name in taken else name


@dataclass(frozen=True, slots=True)
class Cause:
    """Why two places are to hold one value: `why` in words; if two matched loads find them, the new one's text and both
    readers.
    """

    why: str
    operand: str | None = None
    new: Statement | None = None
    old: Statement | None = None


class Stuck(Exception):
    """The end of a search: at these two statements, if there are any, whose instances `link` were to hold one value.
    `matched` new stores had counterparts by then.
    """

    def __init__(
        self, reason: str, new: Statement | None, old: Statement | None, link: Link, cause: Cause, matched: int
    ) -> None:
        super().__init__(reason)
        self.reason, self.new, self.old, self.link, self.cause, self.matched = reason, new, old, link, cause, matched


@dataclass(slots=True)
class Endings:
    """Makes the messages of one search; `theta` has what it found so far."""

    rewrite_model: RewriteModel
    new: Side
    old: Side
    theta: Mapping[tuple[int, int], Link]

    def of(self, new: Statement, old: Statement, reason: str, link: Link, cause: Cause) -> Stuck:
        """The end at two statements that were looked at."""
        return self.at(new, old, f"{self.new.told(new)} against {self.old.told(old)}: {reason}", link, cause)

    def of_forms(
        self, new: Statement | None, old: Statement | None, mine: str, theirs: str, link: Link, cause: Cause
    ) -> Stuck:
        """The end at two places that should hold one value, and whose values have nothing in common."""
        first = (
            self.new.told(new)
            if new is not None
            else f"what {self._buffer(mine.removeprefix(f'{NEW}in_'))} holds at the start"
        )
        second = (
            self.old.told(old)
            if old is not None
            else f"what {self._buffer(theirs.removeprefix(f'{OLD}in_'))} holds at the start"
        )
        if new is not None and old is not None:
            return self.at(new, old, f"{first} and {second} compute values of different forms", link, cause)
        return self.at(new, old, f"the program after has {first} there, the one before {second}", link, cause)

    def of_cells(self, mine: str, theirs: str, link: Link, cause: Cause) -> Stuck:
        """The end at cells of parameters, as they were at the start, that are not those of the layout."""
        said = (
            f"a cell of {self._buffer(mine)} in the program after is not where the one of {self._buffer(theirs)} went"
        )
        return self.at(None, None, said, link, cause)

    def _buffer(self, data: str) -> str:
        """The name of the buffer whose memory has a name; the memory's where no parameter has it."""
        return next(
            (buffer.name for buffer in self.rewrite_model.rewrite.old.buffers if buffer.data.name == data), data
        )

    def at(self, new: Statement | None, old: Statement | None, reason: str, link: Link, cause: Cause) -> Stuck:
        """The end of the search, at these two statements, if there are any."""
        return Stuck(f"{cause.why}: {reason}", new, old, link, cause, len({number for number, _ in self.theta}))

    def told(self, end: Stuck) -> Furthest:
        """An end for a report. An initial value has no line; the load that finds it has one."""
        new = end.new if end.new is not None else end.cause.new
        old = end.old if end.old is not None else end.cause.old
        return Furthest(
            end.reason,
            new.number if new is not None else None,
            old.number if old is not None else None,
            self.new.line(new) if new is not None else None,
            self.old.line(old) if old is not None else None,
            end.cause.operand,
            self._relation(end.new, end.old, end.link) if end.new is not None and end.old is not None else None,
            end.matched,
        )

    def _relation(self, new: Statement, old: Statement, link: Link) -> str | None:
        """A relation as text; None if isl does not find one, or not within what is left of the budget."""
        try:
            with self.rewrite_model.workspace.limited():
                return told_relation(self.rewrite_model, new, old, link)
        except (BudgetExceeded, NotModelled):
            return None
