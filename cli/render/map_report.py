"""The report on a map as text."""

from __future__ import annotations

from collections.abc import Sequence

from layoutproof.cli.output import escaped, is_verbose, styled
from layoutproof.ir.diagnostic import counted
from layoutproof.ir.expr import FALSE, TRUE, Binary, Expr
from layoutproof.ir.index_map import index_map_text
from layoutproof.ir.operators import DIVISIONS
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import free_variables, walk
from layoutproof.verify.maps.map_report import MapReport
from layoutproof.verify.verdict.verdict import Status, Verdict

_LABEL_WIDTH = 16


def verdict_text(verdict: Verdict, markup: bool = False) -> str:
    """`proved  in 0.12 ms`, followed by its reason, if any; with --verbose, `by isl in 0.12 ms`."""
    word = styled(f"{verdict.status.value:<8}", verdict.status, markup)
    text = f"{word} {escaped(_how(verdict), markup)}"
    if verdict.strictness:
        text += escaped(f", needs {' '.join(verdict.strictness)}", markup)
    if verdict.reason is not None:
        text += escaped(f"; {verdict.reason}", markup)
    return text


def _how(verdict: Verdict) -> str:
    time = f"in {_duration(verdict.seconds)}"
    return f"by {verdict.engine} {time}" if is_verbose() else time


def _duration(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.1f} s"


def counterexample_text(verdict: Verdict) -> str | None:
    """The counterexample of an injectivity or bijectivity verdict in words; None if there is none, or if it is an input
    of two programs, which the reason describes.
    """
    example = verdict.counterexample
    if example is None or "inputs" in example:
        return None
    symbols = example.get("symbols", {})
    given = f" (for {', '.join(f'{k} = {v}' for k, v in symbols.items())})" if symbols else ""
    if "cell" in example:
        # Of a race the reason tells which accesses meet, and when.
        return f"{example['buffer']}[{', '.join(map(str, example['cell']))}]{given}"
    if "image" in example:
        first, second, image = (_index(example[key]) for key in ("first", "second", "image"))
        return f"{first} and {second} both go to {image}{given}"
    if "unreached" in example:
        return f"{_index(example['unreached'])} is reached by no logical index{given}"
    return ", ".join(f"{key} = {value}" for key, value in example.items())


def _index(values: object) -> str:
    return f"({', '.join(str(v) for v in values)})" if isinstance(values, list | tuple) else str(values)


def render_map(report: MapReport, markup: bool = False) -> str:
    """The report, one fact a line; with `markup`, the verdict on injectivity is coloured."""
    example, hole = counterexample_text(report.injective), counterexample_text(report.bijective)
    rows: list[tuple[str, str]] = [
        ("index map", escaped(index_map_text(report.index_map), markup)),
        ("logical shape", escaped(extents_text(report.shape), markup)),
        ("injective", verdict_text(report.injective, markup)),
        ("", escaped(example or "", markup)),
        ("surjective", escaped(surjective_text(report), markup)),
        ("", escaped(hole if hole is not None and hole != example else "", markup)),
        ("physical shape", escaped(extents_text(report.physical_shape), markup)),
        ("flattened shape", escaped(extents_text(report.flattened_shape), markup)),
        ("padding where", escaped(_predicate(report), markup)),
        ("padding cells", escaped(_cells(report), markup)),
        ("inverse", escaped(inverse_text(report), markup)),
    ]
    return "".join(f"{label:<{_LABEL_WIDTH}}{text}\n" for label, text in rows if text)


def surjective_text(report: MapReport) -> str:
    """Whether every cell of the box holds an index. A map that is not injective has no verdict on that of its own."""
    verdict, cells = report.bijective, report.padding.cells
    how = f"; {_how(verdict)}" if is_verbose() else ""
    if report.padding.predicate == FALSE or cells == 0:
        return f"yes{how}"
    if verdict.status in (Status.UNKNOWN, Status.VACUOUS):
        return f"{verdict.status.value:<8} {verdict.reason}{how}"
    if verdict.status is Status.PROVED:
        return f"yes{how}"
    if isinstance(cells, int):
        return f"no ({counted(cells, 'padding cell', 'padding cells')}){how}"
    if report.injective.status is Status.REFUTED:
        reason = "the padding has no closed form" if report.padding.reason is None else report.padding.reason
        return f"unknown  {reason}{how}"
    return f"no{how}" if cells is None else f"no ({expr_text(cells, 'plain')} padding cells){how}"


def extents_text(extents: Sequence[Expr | None]) -> str:
    """The extents of a shape; `?` for one without a closed form."""
    text = ", ".join("?" if extent is None else expr_text(extent, "plain") for extent in extents)
    if not extents:
        return "()"
    unknown = any(extent is None for extent in extents)
    return f"{text}   (?: no closed form was found for this extent)" if unknown else text


def _predicate(report: MapReport) -> str:
    predicate = report.padding.predicate
    if predicate is None:
        return _unknown(report.padding.reason)
    if predicate in (FALSE, TRUE):
        return "nowhere" if predicate == FALSE else "everywhere"
    return expr_text(predicate, "plain") + _no_zero(predicate, report.shape)


def _no_zero(predicate: Expr, shape: Sequence[Expr]) -> str:
    """The condition that keeps a predicate's divisors from 0: with an extent of 0, nothing is stored."""
    divisors = [node.rhs for node in walk(predicate) if isinstance(node, Binary) and node.op in DIVISIONS]
    sizes = {variable for extent in shape for variable in free_variables(extent)}
    conditions = dict.fromkeys(f"{v.name} >= 1" for divisor in divisors for v in free_variables(divisor) if v in sizes)
    return f"   (for {' and '.join(conditions)})" if conditions else ""


def inverse_text(report: MapReport) -> str:
    """The inverse, or why there is none."""
    return index_map_text(report.inverse) if report.inverse is not None else _none(report.inverse_reason)


def _none(reason: str | None) -> str:
    return "none" if reason is None else f"none: {reason}"


def _unknown(reason: str | None) -> str:
    return "not known" if reason is None else f"not known: {reason}"


def _cells(report: MapReport) -> str:
    cells, fraction = report.padding.cells, report.padding.fraction
    text = (
        "not known in closed form"
        if cells is None
        else str(cells)
        if isinstance(cells, int)
        else expr_text(cells, "plain")
    )
    return text + (f" ({_percent(fraction)} of the box)" if fraction else "")


def _percent(fraction: float) -> str:
    if 0 < fraction < 0.0005 or 0.9995 <= fraction < 1:
        return "less than 0.1%" if fraction < 0.5 else "more than 99.9%"
    return f"{fraction:.1%}"
