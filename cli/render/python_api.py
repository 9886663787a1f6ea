"""What `layoutproof.draw`, `layoutproof.plan` and `layoutproof.explain` answer: pictures, plans and explanations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any

from layoutproof.cli import codes
from layoutproof.cli.catalogue import has_code, meaning_of
from layoutproof.cli.plot.raster import file_of
from layoutproof.cli.plot.scene import Scene
from layoutproof.cli.render.explanation import explanation, find
from layoutproof.graph.graph_files import load_graph
from layoutproof.graph.model.graph import Graph
from layoutproof.graph.planning.planner import Plan
from layoutproof.graph.planning.planner import plan as plan_graph
from layoutproof.ir import codes as ir_codes
from layoutproof.ir.diagnostic import LayoutproofError, error, wrong_type
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.shown import ShownText
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.maps.map_report import MapReport
from layoutproof.verify.verdict.verdict import Verdict


@dataclass(frozen=True, slots=True, repr=False)
class Drawing:
    """A picture: shown in notebooks, `svg` as text, saved by `save` as .svg or .png."""

    scene: Scene

    @property
    def svg(self) -> str:
        """The SVG file's text."""
        return self.scene.svg()

    def save(self, path: str | Path) -> None:
        """Write the picture; the file's ending chooses the format. Raises LayoutproofError for another ending."""
        from layoutproof.cli.output import write_file
        from layoutproof.cli.plot.map_picture import ending_of

        place = Path(path)
        write_file(place, file_of(self.scene, ending_of(place)))

    def _repr_svg_(self) -> str:
        """The picture, for notebooks, which ask for it by this name."""
        return self.svg

    def __repr__(self) -> str:
        return f"<drawing of {self.scene.title}>"


Drawn = IndexMap | MapReport | Schedule | Verdict | IllegalTransform | str | Callable[..., Any]


def draw(
    what: Drawn,
    of: Any = None,
    *,
    pad: str | float | None = None,
    colour: str = "auto",
    cells: int = 256,
    sizes: Mapping[str, int] | None = None,
) -> Drawing:
    """The picture of a layout, of a buffer through the steps of a schedule, or of a counterexample.

    `what` is a map and `of` its logical shape of numbers, if its text does not say it; or a report of `check_map`; or a
    schedule and `of` the name of a buffer, with the `sizes` of symbols; or a verdict or an `IllegalTransform` with a
    counterexample. `pad` is what padding holds (a number or `undef`), to be shown. `colour` is "order", "row", "bank"
    (of 32; "bank:8" of 8) or "auto". About `cells` cells of a box are shown. Raises LayoutproofError where there is
    nothing to draw.
    """
    from layoutproof.cli.plot.map_picture import COLOURS, PictureOptions, scene_of_map

    _check_types(("colour", colour, str, "text"), ("cells", cells, int, "a number of cells"))
    _check_types(("sizes", {} if sizes is None else sizes, Mapping, "a dictionary by symbol"))
    _check_types(("pad", 0 if pad is None else pad, str | int | float, "a number or the text of a contract"))
    if isinstance(what, Verdict | IllegalTransform):
        return Drawing(_counterexample(what))
    if isinstance(what, Schedule):
        from layoutproof.cli.plot.strip_figure import scene_of_buffer

        if not isinstance(of, str):
            raise error(codes.NOTHING_TO_DRAW, 'draw(schedule, buffer) needs the name of a buffer, such as "A"')
        return Drawing(scene_of_buffer(what.func, of, dict(sizes or {})))
    kind, _, banks = colour.partition(":")
    if kind not in COLOURS or (banks and not (kind == "bank" and banks.isdecimal() and int(banks) > 1)):
        raise error(
            codes.NOTHING_TO_DRAW, f"colour is one of {', '.join(COLOURS)}, or bank:8 and so on, not {colour!r}"
        )
    if of is None and not isinstance(what, MapReport | str):  # a text may say its shape
        raise error(codes.NOTHING_TO_DRAW, "draw(index_map, shape) needs the logical shape, such as (8, 8)")
    report = what if isinstance(what, MapReport) else check_map(what, of)
    options = PictureOptions(cells, kind, int(banks or 32), None if pad is None else str(pad))
    return Drawing(scene_of_map(report, options))


def _check_types(*options: tuple[str, object, type | UnionType, str]) -> None:
    for name, value, kind, expected in options:
        if not isinstance(value, kind):
            raise wrong_type(ir_codes.ARGUMENT, f"draw, argument {name!r}", value, expected)


def _counterexample(what: Verdict | IllegalTransform) -> Scene:
    from layoutproof.cli.plot.counterexample_figure import scene_of_counterexample

    verdict = what.verdict if isinstance(what, IllegalTransform) else what
    found = (
        None if verdict is None or verdict.counterexample is None else scene_of_counterexample(verdict.counterexample)
    )
    if found is None:
        raise error(codes.NOTHING_TO_DRAW, "it has no counterexample that can be drawn")
    return found


def plan(graph: Graph | str | Path, layouts: Mapping[str, str], free: Mapping[str, str] | None = None) -> Plan:
    """The plan with the fewest bytes moved between layouts, for a graph or the file of one (text or ONNX).

    `layouts` gives layouts to operators, as `layoutproof plan --layout` does: {"conv": "NCHW8c"}. `free` names inputs
    and outputs that need not stay as they are, each with its layout. Raises LayoutproofError for unknown names, and for
    layouts that do not fit. `layoutproof.graph.plan` takes maps instead of names, and more.
    """
    from layoutproof.cli.plan.plan_layouts import asked_of, wishes_of
    from layoutproof.importers.onnx import load_model

    for name, given in (("layouts", layouts), ("free", {} if free is None else free)):
        if not isinstance(given, Mapping):
            raise wrong_type(ir_codes.ARGUMENT, f"plan, argument {name!r}", given, "a dictionary by names")
    if not isinstance(graph, Graph):
        if not isinstance(graph, str | Path):
            raise wrong_type(ir_codes.ARGUMENT, "plan, argument 'graph'", graph, "a Graph or the path of one")
        path = Path(graph)
        graph = load_graph(path) if path.suffix == ".py" else load_model(path)
    freed = tuple(f"{name}={layout}" for name, layout in (free or {}).items())
    asked = asked_of(graph, wishes_of(tuple(f"{name}={layout}" for name, layout in layouts.items()), (), freed))
    outputs = [(name, asked.outputs.get(number)) for number, name in enumerate(graph.outputs)]
    return plan_graph(graph, {}, calls=asked.calls, inputs=asked.inputs, outputs=outputs)


def explain(what: str | LayoutproofError | Verdict) -> ShownText:
    """What a code means, why it matters, an example and what to do: of a code such as "LP373", an error, or a verdict.

    Raises LayoutproofError for a code that there is not.
    """
    if not isinstance(what, str | LayoutproofError | Verdict):
        raise wrong_type(ir_codes.ARGUMENT, "explain, argument 'what'", what, "a code, an error or a verdict")
    if isinstance(what, LayoutproofError):
        code = what.diagnostics[0].code
    else:
        code = what.code if isinstance(what, Verdict) else what
    (found, *_) = (code,) if has_code(code) else find(code)
    return ShownText(explanation(meaning_of(found)))
