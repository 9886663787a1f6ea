"""The pictures of the documentation, made by the functions that the pages show."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from docs.primitives import ROOT

import layoutproof as lp

_PROGRAMS = ROOT / "examples" / "programs"


def _map(index_map: str, *shape: int, pad: str | None = None, colour: str = "auto") -> Callable[[], str]:
    return lambda: lp.draw(index_map, shape, pad=pad, colour=colour).svg


def _padded(pad_value: float) -> lp.Schedule:
    """The row sum with its rows in blocks of four."""
    schedule = lp.Schedule(lp.load(_PROGRAMS / "row_sum.py"))
    schedule.transform_layout("sum", "A", "lambda i, j: [i, j//4, j%4]", pad_value=pad_value)
    return schedule


def _memory() -> str:
    return lp.draw(_padded(0.0), "A", sizes={"m": 14}).svg


def _refusal() -> str:
    schedule = _padded(1.0)
    schedule.sequential_buffer_access("sum", "A")
    try:
        schedule.remove_branching_through_overcompute("sum")
    except lp.IllegalTransform as problem:
        return lp.draw(problem).svg
    raise AssertionError("padding that holds 1 changes a sum")


def _plan() -> str:
    from layoutproof.cli.plot.graph_figure import scene_of_choices

    return scene_of_choices(lp.plan(_PROGRAMS / "network.py", {"conv": "NCHW4c"})).svg()


PICTURES: Mapping[str, Callable[[], str]] = {
    "docs/images/row-of-14.svg": _map("lambda i: [i//4, i%4]", 14),
    "docs/images/swizzle.svg": _map("lambda i, j: [i, j ^ i]", 8, 8),
    "docs/images/swizzle-banks.svg": _map("lambda i, j: [i, j ^ i]", 8, 8, colour="bank:8"),
    "docs/images/cute-columns.svg": _map("(8,8):(1,8)", 8, 8, colour="bank:8"),
    "docs/images/accumulator.svg": _map("SM80_16x8x16_F32F16F16F32_TN.C", 32, 4),
    "docs/images/tiles.svg": _map("lambda i, j: [i//4, j//4, i%4, j%4]", 6, 6, pad="undef"),
    "docs/images/clash.svg": _map("lambda i, j: [i//2, j]", 4, 5),
    "docs/images/memory.svg": _memory,
    "docs/images/refusal.svg": _refusal,
    "docs/images/plan.svg": _plan,
}
