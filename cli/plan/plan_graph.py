"""The work of `plan`: its request is checked, the graph is read, folded, planned, proved and run.

With `--planned`, a given graph is proved to be the planned one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import click

from layoutproof.cli import codes as cli_codes
from layoutproof.cli.option_values import MAX_EXTENT
from layoutproof.cli.output import Advance, check_writable
from layoutproof.cli.plan.plan_layouts import NOTHING, Wishes, asked_of, read_layouts, wishes_of
from layoutproof.cli.plan.plan_options import Broken, Left, Limit, PlanOptions, broken_of
from layoutproof.cli.plan.plan_result import OutputComparison, PlanReport, compare_graphs, compare_outputs, moves_in
from layoutproof.graph import codes
from layoutproof.graph.graph_files import load_graph
from layoutproof.graph.model.graph import Graph
from layoutproof.graph.model.graph_witness import AS_IT_WAS, GraphRewrite, Interface
from layoutproof.graph.model.layout_maps import box_of
from layoutproof.graph.planning.costs import MeasuredCosts, bytes_moved, check_costs_path, load_costs
from layoutproof.graph.planning.formulation import Free
from layoutproof.graph.planning.planner import plan
from layoutproof.graph.prove.graph_certificate import path_beside
from layoutproof.graph.prove.graph_matching import matched
from layoutproof.graph.prove.prove_graph import prove_graph_rewrite
from layoutproof.graph.rewrite.absorb import absorbed
from layoutproof.graph.rewrite.fold import Folding, fold
from layoutproof.graph.rewrite.hoist_rewrites import Hoisting, hoisting
from layoutproof.importers.onnx import load_model
from layoutproof.importers.onnx.optional_packages import require_onnxruntime, run_with_onnxruntime
from layoutproof.ir.diagnostic import counted, error
from layoutproof.ir.index_map import IndexMap
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.verify.certificate.sealed_files import is_stream
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status, Verdict

_PICTURES = (".svg", ".png")
_SIZE = re.compile(r"(?P<name>[^=]+)=(?P<size>[0-9]{1,10})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Request:
    """The options and what is read from them: layouts, sizes of open extents, calls that absorb rewrites (each with an
    array; None: all), and the costs of rewrites (None: the bytes moved).
    """

    asked: PlanOptions
    wishes: Wishes
    file_wishes: Wishes
    sizes: Mapping[str, int]
    absorb: tuple[tuple[str, str | None], ...]
    costs: MeasuredCosts | None


def request_of(asked: PlanOptions) -> Request:
    """The request of the options. Raises LayoutproofError or click.UsageError for wrong ones."""
    if asked.onnxruntime and not asked.run:
        raise click.UsageError("--onnxruntime needs --run.")
    if (asked.onnxruntime or asked.sizes) and asked.graph.suffix == ".py":
        raise click.UsageError(
            f"{'--onnxruntime' if asked.onnxruntime else '--size'} is for ONNX models; {asked.graph} is a graph as "
            "text."
        )
    if asked.onnxruntime:
        require_onnxruntime()
    wishes = wishes_of(asked.layouts, asked.frozen, asked.free)
    file_wishes = read_layouts(asked.layout_file) if asked.layout_file is not None else NOTHING
    if asked.planned is not None:
        _check_only(
            asked, asked.planned, bool(wishes.operators or wishes.calls or file_wishes.operators or file_wishes.calls)
        )
    _check_places(asked)
    absorb = tuple(_absorbed(text) for text in asked.absorb)
    return Request(asked, wishes, file_wishes, _sizes(asked.sizes), absorb, _costs(asked.costs, asked.measure))


def _costs(costs: Path | None, measure: Path | None) -> MeasuredCosts | None:
    """A table of costs, with measured ones added on request. Raises LayoutproofError for a file that is no table."""
    if costs is None and measure is None:
        return None
    return MeasuredCosts(load_costs(costs) if costs is not None else None, measures=measure is not None)


def _check_only(asked: PlanOptions, planned: Path, names_layouts: bool) -> None:
    """Raise click.UsageError for planning options if nothing is planned."""
    if planned.suffix != ".py":
        raise click.UsageError(f"--planned takes a graph as text, which ends in .py; {planned} does not.")
    others = ("absorb", "costs", "measure", "greedy", "output", "picture", "onnxruntime")
    named = [name for name in others if getattr(asked, name)] + (["layout"] if names_layouts else [])
    if named:
        raise click.UsageError(f"--planned and --{named[0]} contradict each other: nothing is planned.")


def _check_places(asked: PlanOptions) -> None:
    """Raise LayoutproofError now for files that could not be written at the end, or would overwrite other files of the
    run.

    A table of costs may overwrite the one that was read, since it contains it.
    """
    graph, planned, output, picture = asked.graph, asked.planned, asked.output, asked.picture
    beside_planned = (planned, planned.with_suffix(".npz")) if planned is not None else ()
    read = [path.resolve() for path in (asked.layout_file, asked.costs, *beside_planned) if path is not None]
    if output is not None and output.suffix != ".py":
        raise error(
            cli_codes.OUTPUT,
            f"cannot write {output}: a graph's text ends in .py, and its arrays stand beside it in .npz",
        )
    if picture is not None and picture.suffix.lower() not in _PICTURES:
        raise error(cli_codes.PICTURE_FORMAT, f"{picture}: the file's ending chooses the format; expected .svg or .png")
    if asked.measure is not None:
        check_costs_path(asked.measure)
    given = (graph, graph.with_suffix(".npz")) if graph.suffix == ".py" else (graph,)
    taken = {path.resolve(): "it is what is planned" for path in given}
    graphs = () if output is None else (output, output.with_suffix(".npz"))
    beside = () if asked.certificate is None or is_stream(asked.certificate) else (path_beside(asked.certificate),)
    for path in (*graphs, *beside, *(path for path in (picture, asked.certificate, asked.measure) if path is not None)):
        check_writable(path)
        if path.resolve() in taken:
            raise error(cli_codes.OUTPUT, f"cannot write {path}: {taken[path.resolve()]}")
        if path is not asked.measure and path.resolve() in read:
            raise error(cli_codes.OUTPUT, f"cannot write {path}: it is read by the run")
        taken[path.resolve()] = "something else is written there"


def _sizes(texts: Sequence[str]) -> dict[str, int]:
    """The sizes of open extents, each given once; models may use any names."""
    sizes: dict[str, int] = {}
    for text in texts:
        found = _SIZE.fullmatch(text)
        if found is None or int(found["size"]) > MAX_EXTENT:
            raise error(cli_codes.SIZE, f"--size {text}: expected NAME=NUMBER, such as batch=1, up to {MAX_EXTENT}")
        if found["name"] in sizes:
            raise error(cli_codes.SIZE, f"--size {text}: {found['name']} was given already")
        sizes[found["name"]] = int(found["size"])
    return sizes


def _absorbed(text: str) -> tuple[str, str | None]:
    name, dot, array = text.strip().partition(".")
    if not name.isidentifier() or (dot and not array.isidentifier()):
        raise error(codes.FOLD_INTO, f"--absorb {text!r}: expected NAME or NAME.ARRAY, such as conv2d_3 or conv2d_3.X")
    return name, array if dot else None


def read_graph(path: Path, sizes: Mapping[str, int]) -> Graph:
    """The graph of a file: a model, with sizes for its open extents, or a text. Raises LayoutproofError."""
    if path.suffix == ".onnx":
        return load_model(path, sizes)
    if path.suffix == ".py":
        return load_graph(path)
    raise error(codes.MODEL_FILE, f"{path}: a graph is read from a file that ends in .onnx (a model) or .py (its text)")


def planned(request: Request, advance: Advance) -> PlanReport:
    """The plan of a graph with its proofs and its run; or what was refused.

    Raises LayoutproofError for bad input, and if no call gets the requested layout.
    """
    asked_for = request.asked
    advance("reading")
    graph = read_graph(asked_for.graph, request.sizes)
    advance("folding")
    hoisted = hoisting(graph)
    folding = fold(hoisted.new)
    asked = asked_of(folding.new, request.wishes, request.file_wishes)
    advance("planning")
    outputs = [(output, asked.outputs.get(number)) for number, output in enumerate(folding.new.outputs)]
    cost = request.costs if request.costs is not None else bytes_moved
    found = plan(
        folding.new, {}, calls=asked.calls, inputs=asked.inputs, outputs=outputs if asked.outputs else None, cost=cost
    )
    if found.refused and set(found.refused) == set(asked.calls):
        call, reason = next(iter(found.refused.items()))
        number = len(found.refused)
        raise error(
            codes.NO_PLAN,
            f"of {counted(number, 'call', 'calls')} none can have the layout that was asked for: {call}: {reason}",
        )
    if asked_for.greedy:
        found = replace(found, choice=found.greedy)
    report = PlanReport(
        str(asked_for.graph), graph, asked, hoisted, folding, found, asked_for.greedy, request.costs, asked_for.limits
    )
    advance("giving operators their layouts")
    try:
        made = _with_absorbed(found.rewrite, request.absorb) if request.absorb else None
        report = replace(report, absorbed=made)
        _ = report.rewrite
    except IllegalTransform as problem:
        if not problem.verdicts:
            raise
        return replace(report, refused=problem)
    advance("proving")
    report = replace(report, verdicts=found.verdicts if made is None else prove_graph_rewrite(made, found.interface))
    if not asked_for.run or report.proof is not Status.PROVED:
        return report
    advance("running")
    peer = (lambda arrays: run_with_onnxruntime(asked_for.graph, arrays)) if asked_for.onnxruntime else None
    return replace(report, trial=compare_graphs(graph, found, report.rewrite, asked_for.seed, peer))


def _with_absorbed(rewrite: GraphRewrite, names: Sequence[tuple[str, str | None]]) -> GraphRewrite:
    for name, array in names:
        rewrite = absorbed(rewrite, name, None if array is None else (array,))
    return rewrite


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Two graphs, by their files, and the proofs about the second one. `rewrite` is None if their calls could not be
    paired.

    `outputs` are compared if both were run; `written`: the files made; `seconds`: the duration of each stage.
    """

    source: str
    planned: str
    graph: Graph
    new: Graph
    hoisting: Hoisting
    folding: Folding
    rewrite: GraphRewrite | None
    verdicts: tuple[Verdict, ...]
    limits: tuple[Limit, ...] = ()
    outputs: tuple[OutputComparison, ...] | None = None
    written: tuple[Path, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=lambda: dict[str, float]())

    @property
    def proof(self) -> Status:
        """The worst of all claims; different results refute them."""
        if self.outputs is not None and any(output.differing for output in self.outputs):
            return Status.REFUTED
        hoists = (verdict for hoisted in self.hoisting.made for verdict in hoisted.verdicts)
        folds = (verdict for fold in self.folding.made for verdict in fold.verdicts)
        return worst(verdict.status for verdict in (*hoists, *folds, *self.verdicts))

    @property
    def status(self) -> Status:
        """The status of the run: the worst of all claims; refuted if a limit is exceeded."""
        return worst([self.proof, *([Status.REFUTED] if self.broken else [])])

    @property
    def left(self) -> Left | None:
        """The rewrites that the planned graph has; None if unknown."""
        if self.rewrite is None:
            return None
        moves = list(moves_in(self.rewrite))
        return Left(len(moves), sum(each.bytes for each in moves))

    @property
    def broken(self) -> tuple[Broken, ...]:
        """The exceeded limits."""
        return () if self.left is None else broken_of(self.limits, self.left)


def checked(request: Request, advance: Advance) -> tuple[CheckReport, Interface]:
    """The proof of the planned graph. Raises LayoutproofError for bad input."""
    asked = request.asked
    assert asked.planned is not None  # else there is nothing to check
    advance("reading")
    given, new = read_graph(asked.graph, request.sizes), load_graph(asked.planned)
    advance("folding")
    hoisted = hoisting(given)
    folding = fold(hoisted.new)
    interface = _interface(request, folding.new)
    advance("proving")
    found = matched(folding.new, new, interface)
    rewrite = None if isinstance(found, Verdict) else found
    verdicts = (found,) if isinstance(found, Verdict) else prove_graph_rewrite(found, interface)
    report = CheckReport(
        str(asked.graph), str(asked.planned), given, new, hoisted, folding, rewrite, verdicts, asked.limits
    )
    if asked.run:
        advance("running")
        _check_alike(folding.new, new, interface)
        report = replace(report, outputs=compare_outputs(given, new, interface, asked.seed))
    return report, interface


def _interface(request: Request, graph: Graph) -> Interface:
    """The planned graph's interface, from `--free`. Raises LayoutproofError for a free end without a layout."""
    asked = asked_of(graph, request.wishes, request.file_wishes)
    free = [*asked.inputs.items(), *((graph.outputs[number], each) for number, each in asked.outputs.items())]
    for name, each in free:
        if isinstance(each, Free):
            raise error(codes.LAYOUT_NAMES, f"--free {name}: with --planned, say in which layout: --free {name}=NCHW8c")
    values = graph.by_name()
    inputs = {name: each for name, each in asked.inputs.items() if isinstance(each, IndexMap)}
    outputs = []
    for number, name in enumerate(graph.outputs):
        stored = asked.outputs.get(number)
        outputs.append((name, stored if isinstance(stored, IndexMap) else IndexMap.identity(len(values[name].shape))))
    return Interface(inputs, tuple(outputs)) if free else AS_IT_WAS


def _check_alike(old: Graph, new: Graph, interface: Interface) -> None:
    """Raise LayoutproofError if the two graphs have different interfaces, and cannot be compared."""
    maps = interface.inputs
    wanted = [(v.name, box_of(maps[v.name], v.shape) if v.name in maps else v.shape, v.dtype) for v in old.inputs]
    if wanted != [(v.name, v.shape, v.dtype) for v in new.inputs] or len(new.outputs) != len(old.outputs):
        raise error(
            codes.RUN_INPUT,
            "the planned graph has other inputs or outputs than the given one, so not both run on the same data",
        )
