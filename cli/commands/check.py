"""`layoutproof check`: prove schedules, gates and rewrites, one or thousands; what a repository's CI calls."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click
from click.core import ParameterSource

from layoutproof.cli.configuration import ConfiguredCommand, configuration_of
from layoutproof.cli.options import (
    GateOptions,
    cache_options,
    file_path,
    function_option,
    limit_options,
    policy_options,
    proof_options,
    report_options,
    takes,
    verbose_option,
)

SECONDS = 600.0  # as `cli.gate_run` has it, which takes long to load


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest(GateOptions):
    """What to check, with how many processes, and how."""

    paths: tuple[Path, ...]
    traces: tuple[Path, ...]
    function: str | None
    workers: int | None
    shard: str | None
    dask: str | None
    expect: int | None
    fix: bool


@click.command("check", cls=ConfiguredCommand)
@click.argument("paths", type=file_path, nargs=-1, metavar="[PATH]...")
@click.option(
    "--trace",
    "traces",
    type=file_path,
    multiple=True,
    metavar="TRACE.json|.jsonl",
    help="Schedules of PATH, a program.",
)
@function_option
@proof_options(
    "The fast-math assumptions that proofs may use, the fewest that suffice: ieee (none), finite, reals (all), or "
    "words such as 'nnan ninf'."
)
@policy_options
@click.option(
    "--workers",
    "--jobs",
    type=click.IntRange(1, 256),
    metavar="N",
    help="Processes to use; one for each core by default.",
)
@click.option("--shard", metavar="I/N", help="Check one part of N only, such as 3/10: one job of a CI matrix.")
@limit_options(
    f"End an item that takes longer; 0: never; by default {SECONDS:.0f}.",
    "End an item whose worker takes more.",
)
@click.option(
    "--dask", metavar="ADDRESS", help="Check on the Dask cluster whose scheduler is there, such as tcp://host:8786."
)
@click.option(
    "--expect", type=click.IntRange(0), metavar="N", help="Fail if fewer items are found, in all shards together."
)
@click.option(
    "--fix",
    is_flag=True,
    help="Apply hints to refused schedules, and write those that are proved then.",
)
@cache_options
@report_options
@verbose_option
@takes(CheckRequest)
def check_command(request: CheckRequest) -> int:
    """Prove the gates, schedules and rewrites in PATHs; folders are searched.

    A gate is a function decorated with @layoutproof.gate. A schedule is JSON, for the program that PATH names (with
    --trace) or that is beside it (conv2d.py and conv2d.jsonl); a .jsonl file has one on each line. A rewrite is a file
    with the functions `before` and `after`, and a witness in comments: which store computes which.

    Without PATHs those of the configuration are checked: the table [tool.layoutproof] of pyproject.toml, which also has
    defaults of options.

    Exit codes: 0 all proved; 1 something refuted; 2 the input is wrong; 3 something unknown or vacuous.
    """
    from layoutproof.cli.gate_run import Work, mend, run_gate

    context = click.get_current_context()
    configured, given = configuration_of(context), context.get_parameter_source
    by_default = given("paths") is not ParameterSource.COMMANDLINE
    if by_default and not configured.values.get("paths"):
        raise click.MissingParameter(ctx=context, param_hint="PATH...", param_type="argument")
    # The number is of the paths that stand beside it, not of those that somebody looks at by themselves.
    counts = given("expect") is ParameterSource.COMMANDLINE or (by_default and not request.traces)
    paths = map(Path, configured.values["paths"]) if by_default else request.paths
    work = Work(
        tuple(map(_seen_from_here, paths)),
        tuple(map(_seen_from_here, request.traces)),
        request.function,
        workers=request.workers,
        shard=request.shard,
        dask=request.dask,
        expect=request.expect if counts else None,
        expected_by="--expect" if given("expect") is ParameterSource.COMMANDLINE else f"expect in {configured.file}",
    )
    if request.fix:
        mend(request, work)
    return run_gate(request, work)


def _seen_from_here(path: Path) -> Path:
    """A path below the working directory as relative to it, however it was written: names of items then agree."""
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return path  # the run says that the working directory is gone
    return path.relative_to(here) if path.is_relative_to(here) else path
