"""What `plan` is asked for: its options, and what is read of them before any work is done."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from layoutproof.cli import codes as cli_codes
from layoutproof.cli.output import check_writable
from layoutproof.cli.plan.layout_file import read_layouts
from layoutproof.cli.plan.layouts import NOTHING, Wishes, wishes_of
from layoutproof.cli.plan.options import PlanOptions
from layoutproof.cli.values import MAX_EXTENT
from layoutproof.graph import codes
from layoutproof.graph.certificate_arrays import path_beside
from layoutproof.graph.planning.cost_files import check_costs_path, load_costs
from layoutproof.graph.planning.measuring import MeasuredCosts
from layoutproof.importers.onnx.peer import require_onnxruntime
from layoutproof.ir.diagnostic import error
from layoutproof.verify.certificate.sealed_files import is_stream

_PICTURES = (".svg", ".png")
_SIZE = re.compile(r"(?P<name>[^=]+)=(?P<size>[0-9]{1,10})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Request:
    """The options, and what is read of them: layouts that options and a file ask for, sizes of open extents, calls that absorb rewrites (of
    each, the array that is meant; None: all), and what rewrites cost (None: the bytes that they move).
    """

    asked: PlanOptions
    wishes: Wishes
    file_wishes: Wishes
    sizes: Mapping[str, int]
    absorb: tuple[tuple[str, str | None], ...]
    costs: MeasuredCosts | None


def request_of(asked: PlanOptions) -> Request:
    """What options say. Raises LayoutproofError or click.UsageError for what is wrong with them."""
    if asked.onnxruntime and not asked.run:
        raise click.UsageError("--onnxruntime is said of --run.")
    if (asked.onnxruntime or asked.sizes) and asked.graph.suffix == ".py":
        raise click.UsageError(
            f"{'--onnxruntime' if asked.onnxruntime else '--size'} is for ONNX models; {asked.graph} is a graph as text."
        )
    if asked.onnxruntime:
        require_onnxruntime()
    wishes = wishes_of(asked.layouts, asked.frozen, asked.free)
    file_wishes = read_layouts(asked.layout_file) if asked.layout_file is not None else NOTHING
    if asked.planned is not None:
        _check_only(asked, asked.planned, bool(wishes.operators or wishes.calls or file_wishes.operators or file_wishes.calls))
    _check_places(asked)
    absorb = tuple(_absorbed(text) for text in asked.absorb)
    return Request(asked, wishes, file_wishes, _sizes(asked.sizes), absorb, _costs(asked.costs, asked.measure))


def _costs(costs: Path | None, measure: Path | None) -> MeasuredCosts | None:
    """A table of costs, to which measured ones are added where that is asked for. Raises LayoutproofError for a file that is no table."""
    if costs is None and measure is None:
        return None
    return MeasuredCosts(load_costs(costs) if costs is not None else None, measures=measure is not None)


def _check_only(asked: PlanOptions, planned: Path, names_layouts: bool) -> None:
    """Raise click.UsageError for options that say how to plan, where nothing is planned."""
    if planned.suffix != ".py":
        raise click.UsageError(f"--planned takes a graph as text, which ends in .py; {planned} does not.")
    others = ("absorb", "costs", "measure", "greedy", "output", "picture", "onnxruntime")
    named = [name for name in others if getattr(asked, name)] + (["layout"] if names_layouts else [])
    if named:
        raise click.UsageError(f"--planned and --{named[0]} contradict each other: nothing is planned.")


def _check_places(asked: PlanOptions) -> None:
    """Raise LayoutproofError now for what could not be written at the end, or would overwrite what is read or written besides.

    A table of costs may be written over the one that was read: it has all that this one had.
    """
    graph, planned, output, picture = asked.graph, asked.planned, asked.output, asked.picture
    beside_planned = (planned, planned.with_suffix(".npz")) if planned is not None else ()
    read = [path.resolve() for path in (asked.layout_file, asked.costs, *beside_planned) if path is not None]
    if output is not None and output.suffix != ".py":
        raise error(cli_codes.OUTPUT, f"cannot write {output}: a graph's text ends in .py, and its arrays stand beside it in .npz")
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
    """The sizes of open extents. A model may call them anything, so nothing is said here of names but that each is given once."""
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
