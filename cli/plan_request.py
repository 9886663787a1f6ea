"""What `plan` is asked for, read and checked before any work is done."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from layoutproof.cli import codes as cli_codes
from layoutproof.cli.gate.items import Options
from layoutproof.cli.output import check_writable
from layoutproof.cli.plan_costs import costs_of
from layoutproof.cli.plan_layout_file import read_layouts
from layoutproof.cli.plan_layouts import NOTHING, Wishes, wishes_of
from layoutproof.cli.plan_limits import Limit
from layoutproof.cli.values import MAX_EXTENT
from layoutproof.graph import codes
from layoutproof.graph.certificate_arrays import path_beside
from layoutproof.graph.planning.cost_files import check_costs_path
from layoutproof.graph.planning.measuring import MeasuredCosts
from layoutproof.importers.onnx.peer import require_onnxruntime
from layoutproof.ir.diagnostic import error
from layoutproof.lowering.proof_cache.places import place_of
from layoutproof.verify.whole_files import is_stream

_PICTURES = (".svg", ".png")
_SIZE = re.compile(r"(?P<name>[^=]+)=(?P<size>[0-9]{1,10})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Request:
    """A graph's file, the layouts that are asked for, and what is to be done with the plan.

    `absorb` names calls, and arrays of them that are meant (None: all). `options` are those of the proofs.
    """

    graph: Path
    planned: Path | None
    wishes: Wishes
    file_wishes: Wishes
    sizes: Mapping[str, int]
    absorb: tuple[tuple[str, str | None], ...]
    costs: MeasuredCosts | None
    measure: Path | None
    greedy: bool
    limits: tuple[Limit, ...]
    run: bool
    onnxruntime: bool
    seed: int
    output: Path | None
    picture: Path | None
    certificate: Path | None
    options: Options
    output_format: str


def request_of(
    graph: Path,
    *,
    planned: Path | None,
    layouts: Sequence[str],
    frozen: Sequence[str],
    free: Sequence[str],
    layout_file: Path | None,
    sizes: Sequence[str],
    absorb: Sequence[str],
    costs: Path | None,
    measure: Path | None,
    greedy: bool,
    limits: Sequence[Limit],
    run: bool,
    onnxruntime: bool,
    seed: int,
    output: Path | None,
    picture: Path | None,
    certificate: Path | None,
    cache: Path | None,
    no_cache: bool,
    output_format: str,
) -> Request:
    """What the options of `plan` say, which these are. Raises LayoutproofError or click.UsageError for what is wrong with them."""
    if cache is not None and no_cache:
        raise click.UsageError("--cache and --no-cache contradict each other.")
    if onnxruntime and not run:
        raise click.UsageError("--onnxruntime is said of --run.")
    if (onnxruntime or sizes) and graph.suffix == ".py":
        raise click.UsageError(f"{'--onnxruntime' if onnxruntime else '--size'} is for ONNX models; {graph} is a graph as text.")
    if onnxruntime:
        require_onnxruntime()
    wishes, file_wishes = wishes_of(layouts, frozen, free), read_layouts(layout_file) if layout_file is not None else NOTHING
    if planned is not None:
        others = {"absorb": absorb, "costs": costs, "measure": measure, "greedy": greedy, "output": output, "picture": picture}
        _check_only(planned, wishes, file_wishes, {**others, "onnxruntime": onnxruntime})
    beside = (planned, planned.with_suffix(".npz")) if planned is not None else ()
    read = [path for path in (layout_file, costs, *beside) if path is not None]
    _check_places(graph, read, measure, output, picture, certificate)
    return Request(
        graph,
        planned,
        wishes,
        file_wishes,
        _sizes(sizes),
        tuple(_absorbed(text) for text in absorb),
        costs_of(costs, measure),
        measure,
        greedy,
        tuple(limits),
        run,
        onnxruntime,
        seed,
        output,
        picture,
        certificate,
        Options((), cache=None if no_cache else str(place_of(str(cache) if cache is not None else None))),
        output_format,
    )


def _check_only(planned: Path, wishes: Wishes, file_wishes: Wishes, others: Mapping[str, object]) -> None:
    """Raise click.UsageError for options that say how to plan, where nothing is planned."""
    if planned.suffix != ".py":
        raise click.UsageError(f"--planned takes a graph as text, which ends in .py; {planned} does not.")
    named = [name for name, value in others.items() if value]
    if wishes.operators or wishes.calls or file_wishes.operators or file_wishes.calls:
        named.append("layout")
    if named:
        raise click.UsageError(f"--planned and --{named[0]} contradict each other: nothing is planned.")


def _check_places(
    graph: Path, read: Sequence[Path], measure: Path | None, output: Path | None, picture: Path | None, certificate: Path | None
) -> None:
    """Raise LayoutproofError now for what could not be written at the end, or would overwrite what is read or written besides.

    A table of costs may be written over the one that was read: it has all that this one had.
    """
    if output is not None and output.suffix != ".py":
        raise error(cli_codes.OUTPUT, f"cannot write {output}: a graph's text ends in .py, and its arrays stand beside it in .npz")
    if picture is not None and picture.suffix.lower() not in _PICTURES:
        raise error(cli_codes.PICTURE_FORMAT, f"{picture}: the file's ending chooses the format; expected .svg or .png")
    if measure is not None:
        check_costs_path(measure)
    given = (graph, graph.with_suffix(".npz")) if graph.suffix == ".py" else (graph,)
    taken = {path.resolve(): "it is what is planned" for path in given}
    graphs = () if output is None else (output, output.with_suffix(".npz"))
    beside = () if certificate is None or is_stream(certificate) else (path_beside(certificate),)
    for path in (*graphs, *beside, *(path for path in (picture, certificate, measure) if path is not None)):
        check_writable(path)
        if path.resolve() in taken:
            raise error(cli_codes.OUTPUT, f"cannot write {path}: {taken[path.resolve()]}")
        if path is not measure and path.resolve() in (other.resolve() for other in read):
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
