"""`layoutproof tv`: translation validation of MLIR: two files, or what mlir-opt does to one, pass by pass."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from layoutproof.cli import codes
from layoutproof.cli.options import (
    GateOptions,
    cache_options,
    file_path,
    limit_options,
    policy_options,
    proof_options,
    report_options,
    takes,
    verbose_option,
)
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, error

if TYPE_CHECKING:
    from layoutproof.cli.gate.check_items import Item


@dataclass(frozen=True, slots=True, kw_only=True)
class TvRequest(GateOptions):
    """Two files, or one with the passes to run on it."""

    before: Path
    after: Path | None
    passes: str | None
    program: str | None
    steps: Path | None
    function: str | None
    may_alias: bool


@click.command("tv")
@click.argument("before", type=file_path, metavar="BEFORE.mlir")
@click.argument("after", type=file_path, required=False, metavar="[AFTER.mlir]")
@click.option(
    "--mlir-opt", "passes", metavar="OPTIONS", help="Instead of AFTER: passes of mlir-opt, each of which is checked."
)
@click.option(
    "--mlir-opt-path", "program", metavar="PROGRAM", help="The mlir-opt to run; by default one that is installed."
)
@click.option(
    "--save-steps", "steps", type=file_path, metavar="FOLDER", help="Keep the module after each pass in this folder."
)
@click.option("--function", metavar="NAME", help="Only this function.")
@click.option(
    "--may-alias", is_flag=True, help="Memref arguments may overlap; by default it is assumed that they do not."
)
@proof_options(
    "The fast-math assumptions that the proof may use, the fewest that suffice: ieee (none), finite, reals (all), "
    "or words.",
    "ieee",
)
@policy_options
@limit_options("End each comparison if it takes longer; 0: never.", "End each comparison if it takes more.")
@cache_options
@report_options
@verbose_option
@takes(TvRequest)
def tv_command(request: TvRequest) -> int:
    """Does the MLIR of AFTER do what that of BEFORE does?

    Functions are paired by name. With --mlir-opt, mlir-opt is run on BEFORE with these options, and the module after
    each pass is compared with the one before it, so that the first wrong pass is named.

    Floats are IEEE's; `?` stands for every size, 0 included. A refutation has an input on which both programs were
    run. An operation that is not supported is an error at its line and column.

    Exit codes: 0 proved; 1 refuted; 2 the input is wrong; 3 unknown or vacuous.
    """
    from layoutproof.cli.gate_run import Work, run_gate

    if (request.after is None) == (request.passes is None):
        raise click.UsageError("give AFTER.mlir, or --mlir-opt with the passes")
    if request.after is not None:
        pairs = _items(request, request.before, request.after, f"{request.before} -> {request.after}")
        return run_gate(request, Work((request.before, request.after), items=tuple(pairs)))
    with _folder(request.steps) as folder:
        items = list(_pipeline(request, folder))
        if not items:
            click.echo(f"{request.before}: no pass changed anything", err=True)
            return 0
        return run_gate(request, Work((request.before,), items=tuple(items)))


def _pipeline(request: TvRequest, folder: Path) -> Iterator[Item]:
    """An item for each function that a pass changed."""
    from layoutproof.cli.output import write_file
    from layoutproof.importers.mlir.mlir_opt import find_mlir_opt, run_passes

    assert request.passes is not None
    dumps = run_passes(find_mlir_opt(request.program), request.before, request.passes)
    before, known = request.before, dumps[0].text
    for number, dump in enumerate(dumps[1:], 1):
        if dump.text.strip() == known.strip():
            continue
        name = "".join(c if c.isalnum() or c in "-_" else "_" for c in dump.name)
        after = folder / f"{number:02}-{name}.mlir"
        write_file(after, dump.text.encode())
        yield from _items(request, before, after, f"pass {number}, {dump.name}")
        before, known = after, dump.text


def _items(request: TvRequest, before: Path, after: Path, title: str) -> Iterator[Item]:
    from layoutproof.cli.gate.check_items import Item
    from layoutproof.cli.gate.judging.comparisons import Asked
    from layoutproof.cli.gate.outcomes import Kind
    from layoutproof.importers.mlir.validation import functions_in_both

    pairs = functions_in_both(before, after)
    if request.function is not None and request.function not in pairs:
        message = f"{before} has no function {request.function}"
        raise error(codes.FUNCTION, message, help=f"it has {', '.join(pairs)}")
    for name, (_, new) in pairs.items():
        if request.function in (None, name):
            text = Asked((name, name), may_alias=request.may_alias).text
            whole = title if len(pairs) == 1 else f"{title}: @{name}"
            yield Item(Kind.COMPARISON, whole, str(after), new.span.line, name, None, str(before), text)


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    """The folder for modules between passes: the given one, or one that is removed afterwards."""
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given
        return
    made = Path(tempfile.mkdtemp(prefix="layoutproof-tv-"))
    try:
        yield made
    except LayoutproofError as problem:
        raise LayoutproofError([_about_removed(each, made) for each in problem.diagnostics]) from problem
    finally:
        shutil.rmtree(made)


def _about_removed(problem: Diagnostic, folder: Path) -> Diagnostic:
    """A diagnostic; of a file in a folder that will be removed it says how to keep the file."""
    if problem.help is not None or problem.span is None or folder not in Path(problem.span.source.name).parents:
        return problem
    return replace(problem, help="--save-steps FOLDER keeps the module after each pass")
