"""The tables of planned networks, as Markdown, from the figures that `bench_plan` keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "plans.json"
MARKS = ("<!-- begin: made by benchmarks/bench_plan.py -->", "<!-- end: made by benchmarks/bench_plan.py -->")
FIRST_HEAD = (
    "| network | blocks | functions | first run | in a second process | proofs from the cache |",
    "|---|---:|---:|---:|---:|---:|",
)
RUN_HEAD = (
    "| network | blocks | plain | unplanned | planned | bits | onnxruntime | difference |",
    "|---|---:|---:|---:|---:|---|---:|---:|",
)
Figures = Mapping[str, Any]
Results = Mapping[str, Mapping[str, Figures]]
"""By network and by the channels in a block: what was measured."""


def tables(results: Results) -> str:
    """The rewrites, the times of planning and proving, and the times of runs."""
    parts = ["**Rewrites, and the bytes that they move**", *_rewrites(results)]
    parts += ["", "**Seconds of planning and proving**", *_proofs(results)]
    runs, firsts = list(_runs(results)), list(_firsts(results))
    if firsts:
        parts += ["", "**Seconds of a first run, kernels made on the way**", *FIRST_HEAD, *firsts]
    if runs:
        parts += ["", "**Milliseconds of a run, one image, one thread**", *RUN_HEAD, *runs]
    return "\n".join(_spaced(parts)) + "\n"


def _spaced(lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield line
        if line.startswith("**"):
            yield ""


def _rewrites(results: Results) -> Iterator[str]:
    yield "| network | calls | blocks | as they are | before | greedy | exact |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for name, blocks in results.items():
        for block, found in blocks.items():
            cells = (_rewriting(found[key]) for key in ("before", "greedy", "exact"))
            exact = "" if found["optimal"] else " (not proved to be least)"
            yield f"| {name} | {found['calls']} | {block} | {found['refused']} | {' | '.join(cells)}{exact} |"


def _rewriting(figures: Figures) -> str:
    return f"{figures['rewrites']} ({figures['bytes'] / 1e6:.1f} MB)"


def _proofs(results: Results) -> Iterator[str]:
    yield "| network | blocks | reading | planning | applying, proving | with the proof cache | values proved |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for name, blocks in results.items():
        for block, found in blocks.items():
            yield (
                f"| {name} | {block} | {found['import seconds']:.1f} | {found['plan seconds']:.1f} | {_proved(found)} |"
            )


def _proved(found: Figures) -> str:
    if "verdicts" not in found:
        return "| | "
    total = sum(found["verdicts"].values())
    cold = f"{found['apply seconds']:.1f}, {found['prove seconds']:.1f}"
    again = (
        f"{found['apply seconds again']:.1f}, {found['prove seconds again']:.1f}"
        if "apply seconds again" in found
        else ""
    )
    return f"{cold} | {again} | {found['verdicts'].get('proved', 0)} of {total}"


def _firsts(results: Results) -> Iterator[str]:
    for name, blocks in results.items():
        for block, found in blocks.items():
            if "first seconds again" in found:
                times = f"{found['first seconds']:.1f} | {found['first seconds again']:.1f}"
                known = f"{found['proofs known']} of {found['proofs asked']}"
                yield f"| {name} | {block} | {found['functions']} | {times} | {known} |"


def _runs(results: Results) -> Iterator[str]:
    for name, blocks in results.items():
        for block, found in blocks.items():
            if "bit-equal" not in found:
                continue
            times = " | ".join(_milliseconds(found, label) for label in ("plain", "unplanned", "planned"))
            bits = "equal" if found["bit-equal"] else "differ"
            peer = _milliseconds(found, "onnxruntime")
            yield f"| {name} | {block} | {times} | {bits} | {peer} | {found['largest difference']:.1e} |"


def _milliseconds(found: Figures, label: str) -> str:
    return f"{found[f'{label} seconds'] * 1e3:.1f}"
