"""The report on a comparison of two programs: layouts, parameters with unchanged cells, preconditions, and one finding
with its lines in both files if it is not proved.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from layoutproof.cli.gate.judging.findings import digest, of_verdict
from layoutproof.cli.gate.outcomes import Finding, Place, step_of
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import Span
from layoutproof.ir.expr import IntImm
from layoutproof.ir.stmt import BufferStore
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import walk
from layoutproof.lowering.passes.illegal import worst_first
from layoutproof.verify.values.fast_math import FastMath, names_of
from layoutproof.verify.verdict import codes as claims
from layoutproof.verify.verdict.report import counterexample_text
from layoutproof.verify.verdict.verdict import Status, Verdict

if TYPE_CHECKING:
    from layoutproof.ir.primfunc import PrimFunc
    from layoutproof.lowering.compare.comparison import BufferLayout, Comparison


def as_step(compared: Comparison) -> Mapping[str, Any]:
    """The comparison as a report's only step."""
    return step_of("compare", compared.arguments, compared.verdicts)


# ---- what holds


def kept_by(compared: Comparison) -> tuple[str, ...]:
    """Parameters, by their names before, whose cells are unchanged: same shape and type in both programs, and no layout
    given.
    """
    moved = {layout.buffer for layout in compared.layouts}
    new = _counterparts(compared)
    return tuple(
        b.name for b in compared.before.buffers if b.name not in moved and b.name in new and _alike(b, new[b.name])
    )


def _counterparts(compared: Comparison) -> Mapping[str, Buffer]:
    """The buffer after by the name of the one before: by memory if there is a rewrite; else by name, or by position."""
    if compared.rewrite is not None:
        by_memory = {buffer.data: buffer for buffer in compared.rewrite.new.buffers}
        return {
            buffer.name: by_memory[buffer.data] for buffer in compared.rewrite.old.buffers if buffer.data in by_memory
        }
    named = {buffer.name: buffer for buffer in compared.after.buffers}
    pairs = zip(compared.before.buffers, compared.after.buffers, strict=False)
    return {old.name: named.get(old.name, new) for old, new in pairs}


def _alike(old: Buffer, new: Buffer) -> bool:
    shapes = [[expr_text(extent, Style.PLAIN) for extent in buffer.shape] for buffer in (old, new)]
    return old.dtype == new.dtype and shapes[0] == shapes[1]


def notes_of(compared: Comparison) -> tuple[str, ...]:
    """Notes besides the verdict, a line each: layouts and padding, unchanged parameters, fast-math assumptions,
    preconditions.
    """
    from layoutproof.lowering.compare.comparison import NO_STEP

    lines = layouts_of(compared)
    if compared.status is Status.PROVED:
        needed = frozenset(FastMath(word) for word in compared.strictness)
        lines.append(
            f"the two programs do the same {'with ' + ' '.join(names_of(needed)) if needed else 'bit for bit'}"
        )
        lines += _assumed(compared)
        lines += [] if compared.records else [NO_STEP]
    return tuple(lines)


def layouts_of(compared: Comparison) -> list[str]:
    """A line for each parameter that has moved, and one for all others."""
    lines = [_layout_line(layout, compared) for layout in compared.layouts]
    kept = kept_by(compared)
    if kept and compared.status is not Status.REFUTED:  # the reason says it then
        lines.append(f"{', '.join(kept)} {'keeps its layout' if len(kept) == 1 else 'keep their layouts'}")
    return lines


def _layout_line(layout: BufferLayout, compared: Comparison) -> str:
    stored = f" as {layout.stored_as}" if layout.stored_as != layout.buffer else ""
    head = f"{layout.buffer} is stored{stored} by `{layout.index_map}` ({_origin(compared, layout.layout_given)})"
    padding = _padding_text(layout, compared)
    return f"{head}; {padding}" if padding else head


def _padding_text(layout: BufferLayout, compared: Comparison) -> str:
    cells = _cells(compared.before, layout.buffer), _cells(compared.after, layout.stored_as)
    if None not in cells and cells[0] == cells[1]:
        return "there is no padding"
    origin = _origin(compared, layout.pad_given)
    if layout.pad_value == "undef":
        return f"its padding may hold anything ({origin})"
    if layout.pad_value is not None:
        fills = "" if layout.buffer in _written(compared.before) else ": callers fill it"
        return f"its padding holds {layout.pad_value} ({origin}){fills}"
    return f"its padding{'' if None not in cells else ', if there is any,'} is not touched ({origin})"


def _origin(compared: Comparison, given: bool) -> str:
    return "given" if given else "found" if compared.status is Status.PROVED else "tried"


def _written(func: PrimFunc) -> frozenset[str]:
    stored = {node.buffer.data for node in walk(func.body) if isinstance(node, BufferStore)}
    return frozenset(buffer.name for buffer in func.buffers if buffer.data in stored)


def _cells(func: PrimFunc, name: str) -> int | None:
    """A parameter's number of cells; None for symbolic shapes and unknown parameters."""
    shape: Sequence[Any] = next((buffer.shape for buffer in func.buffers if buffer.name == name), (None,))
    total = 1
    for extent in shape:
        if not isinstance(extent, IntImm):
            return None
        total *= extent.value
    return total


def _assumed(compared: Comparison) -> Iterator[str]:
    """Preconditions that are not checked, by their origin."""
    from layoutproof.cli.gate.judging.detail import assumptions

    rewrite = compared.rewrite
    if rewrite is None:
        return
    by_whom: dict[str, list[str]] = {}
    for entry in assumptions([rewrite.old, rewrite.new], [compared.where] if compared.where is not None else []):
        if entry["whose"] == "program" and entry["since"] > 0:
            continue  # what only the program after assumes is proved, or the whole is not
        by_whom.setdefault(entry["whose"], []).append(entry["text"])
    for whose, texts in by_whom.items():
        yield f"{_WHOSE[whose]}: {'; '.join(texts)}"


_WHOSE = {
    "caller": "given precondition",
    "program": "precondition of the old program",
    "call": "precondition of every call",
}


# ---- what is not proved


def findings_of(compared: Comparison, call: Place | None = None, allow_unknown: bool = False) -> tuple[Finding, ...]:
    """The finding of two programs that are not proved equivalent, at its line in the program after, with the line
    before as a related place. With `call`, the gate's place of the question, both are related places.
    """
    if compared.status is Status.PROVED:
        return ()
    shown, detailed = _shown(compared)
    bare = of_verdict(shown, "", None, obligation_of_both(compared), allow_unknown)
    reason = _reason(shown).removeprefix(f"{compared.before.name}: ")
    places = [(call, "")] if call is not None else []
    places += [(place, word) for place, word in _places(compared, shown, detailed) if place is not None]
    (first, _), *rest = places if places else [(None, "")]
    finding = replace(
        bare,
        code=_code(shown, detailed),
        message=f"{_headline(compared)}: {reason}",
        place=first,
        related=tuple((place, word) for place, word in rest if place is not None),
        help=bare.help if bare.help is not None else _hint(compared),
    )
    return (finding,)


def _reason(whole: Verdict) -> str:
    text = counterexample_text(whole)
    return text if text is not None else whole.claim.text


def _headline(compared: Comparison) -> str:
    before, after = compared.before.name, compared.after.name
    old, new = (before, after) if before != after else (f"{before} before", f"{after} after")
    if compared.status is Status.REFUTED:
        return f"{new} does not do what {old} does"
    word = "is not decided" if compared.status is Status.UNKNOWN else "is a question about nothing"
    return f"whether {new} does what {old} does {word}"


def _shown(compared: Comparison) -> tuple[Verdict, Verdict]:
    """The verdict on the whole, and the checker's most specific one."""
    ordered = worst_first(compared.verdicts)
    whole = compared.verdicts[0] if compared.verdicts[0].status is compared.status else ordered[0]
    others = [verdict for verdict in ordered if verdict.status is compared.status and verdict is not whole]
    # Without a witness the checker only reports that there is none.
    telling = [verdict for verdict in others if verdict.claim.kind.code not in _SAYING_NOTHING]
    return whole, next(iter(telling), whole)


_SAYING_NOTHING = (claims.WITNESS, claims.UNPROVED)


def _code(whole: Verdict, detailed: Verdict) -> str:
    """The code of what is refuted: of the claim, or of a different value of an element or of padding."""
    example = whole.counterexample
    if example is None:
        return whole.code
    element = example.get("element")
    if element is None:
        return detailed.code
    of_padding = element["logical"] is None and element["before_index"] is None
    return claims.PADDING_POSTCONDITION if of_padding else claims.OTHER_END


def obligation_of_both(compared: Comparison) -> str:
    """The hash of the question: both programs and what was given, without what was found."""
    from layoutproof.ir.script.printer import print_func

    given = [
        [
            layout.buffer,
            layout.index_map if layout.layout_given else None,
            layout.pad_value if layout.pad_given else None,
        ]
        for layout in compared.layouts
        if layout.layout_given or layout.pad_given
    ]
    where = expr_text(compared.where) if compared.where is not None else ""
    pairs = [json.dumps(sorted(compared.match.items()))] if compared.match else []
    return digest("compare", print_func(compared.before), print_func(compared.after), json.dumps(given), where, *pairs)


def _hint(compared: Comparison) -> str | None:
    """Options of `compare` that might change the answer."""
    if compared.status is not Status.UNKNOWN:
        return None
    given = {layout.buffer for layout in compared.layouts if layout.layout_given}
    new = _counterparts(compared)
    sought = [
        b.name for b in compared.before.buffers if b.name not in given and b.name in new and _differ(b, new[b.name])
    ]
    if sought:
        return (
            f"the layout of {', '.join(sought)} was searched; a layout that is given narrows the search, and "
            "lets a difference refute"
        )
    kept = kept_by(compared)
    return f"{', '.join(kept)}: the layout was assumed to be unchanged; give one if it is not" if kept else None


def _differ(old: Buffer, new: Buffer) -> bool:
    """Whether two shapes are different for all values of their names."""
    pairs = zip(old.shape, new.shape, strict=False)
    return old.rank != new.rank or any(
        isinstance(a, IntImm) and isinstance(b, IntImm) and a.value != b.value for a, b in pairs
    )


Pointed = tuple[Place | None, str]


def _places(compared: Comparison, whole: Verdict, detailed: Verdict) -> tuple[Pointed, Pointed]:
    """The lines in the program after and in the one before, each with a word; None if no line is known."""
    from layoutproof.lowering.passes.steps import place_of_claim

    furthest, example = compared.furthest, whole.counterexample
    if furthest is not None and example is None:
        after = _line_of(compared.after, furthest.new_line, furthest.operand)
        before = _line_of(compared.before, furthest.old_line, furthest.operand)
        return (after, "in the program after"), (before, "before, this is what it came to")
    stores = [example.get(key) if example is not None else None for key in ("after_store", "before_store")]
    lines = [store["line"] if store is not None else None for store in stores]
    claimed = place_of_claim(detailed.claim, compared.after)
    after = (
        _line_of(compared.after, lines[0])
        if lines[0] is not None
        else Place.of(claimed)
        if claimed is not None
        else None
    )
    return (after, "in the program after"), (_line_of(compared.before, lines[1]), "before, the cell was stored here")


def _line_of(func: PrimFunc, line: int | None, part: str | None = None) -> Place | None:
    """A line of the file of a function, or a part of it."""
    if line is None or func.span is None:
        return None
    source = func.span.source
    text = source.line(line)
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    if part is not None and text.count(part) == 1:
        start, end = text.index(part), text.index(part) + len(part)
    return Place.of(Span(source, line, start, line, max(end, start + 1)))
