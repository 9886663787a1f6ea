"""`layoutproof check`: prove schedules, gates and rewrites, one or thousands; what a repository's CI calls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from layoutproof.cli.options import file_path, output_option, strictness_option

FORMATS = ("text", "json", "junit", "sarif", "github", "html")
SECONDS = 600.0  # as `cli.gating` has it, which takes long to load


def read_reports(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> tuple[tuple[str, Path], ...]:
    """`FORMAT=FILE` as pairs. Raises click.BadParameter for other texts."""
    found: list[tuple[str, Path]] = []
    for text in texts:
        form, equals, path = text.partition("=")
        if form not in FORMATS or not equals or not path:
            raise click.BadParameter(f"{text!r} is not FORMAT=FILE with a format of {', '.join(FORMATS)}")
        found.append((form, file_path(path)))
    return tuple(found)


class Number(click.FloatRange):
    """A number of a range; `nan`, which is in none and which no comparison keeps out, is refused."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        """The number. Raises click.BadParameter."""
        number = super().convert(value, parameter, context)
        if number != number:
            self.fail(f"{value} is no number.", parameter, context)
        return number


@click.command("check")
@click.argument("paths", type=file_path, nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--trace",
    "traces",
    type=file_path,
    multiple=True,
    metavar="TRACE.json|.jsonl",
    help="Schedules of PATH, a program.",
)
@click.option("--function", metavar="NAME", help="Which function, where the program has several.")
@click.option("--certificate", type=file_path, metavar="FILE", help="Write what was proved there, for `layoutproof recheck`.")
@strictness_option(
    "The float licences that proofs may use, the fewest that suffice: ieee (none), finite, reals (all), or words such as 'nnan ninf'."
)
@click.option(
    "--budget",
    type=Number(0.001, 1000),
    default=1.0,
    show_default=True,
    metavar="FACTOR",
    help="A factor on all budgets.",
)
@click.option("--select", multiple=True, metavar="CODES", help="Only these codes fail the run: LP222, or LP2 for all that begin so.")
@click.option("--ignore", multiple=True, metavar="CODES", help="These codes fail no run.")
@click.option("--allow-unknown", is_flag=True, help="What is neither proved nor refuted fails no run.")
@click.option("--baseline", type=file_path, metavar="FILE", help="Known findings, which fail no run.")
@click.option("--write-baseline", type=file_path, metavar="FILE", help="Write this run's findings there, as known ones.")
@click.option(
    "--workers", "--jobs", type=click.IntRange(1, 256), metavar="N", help="Processes to use; as many as there are cores unless said."
)
@click.option("--shard", metavar="I/N", help="Check one part of N only, such as 3/10: one job of a CI matrix.")
@click.option(
    "--timeout",
    type=Number(0, 1_000_000),
    metavar="SECONDS",
    help=f"End an item that takes longer; 0: never. {SECONDS:.0f} unless said, where there are several items.",
)
@click.option("--memory", type=click.IntRange(64), metavar="MB", help="End an item whose worker takes more.")
@click.option("--dask", metavar="ADDRESS", help="Check on the Dask cluster whose scheduler is there, such as tcp://host:8786.")
@click.option("--cache", "cache", type=file_path, metavar="PLACE", help="The proof cache: an .sqlite file, or a shared folder.")
@click.option("--no-cache", is_flag=True, help="Prove everything anew.")
@click.option("--stable", is_flag=True, help="Leave out times and cache hits: runs that find the same give the same bytes.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default=FORMATS[0],
    show_default=True,
    help="Form of the output.",
)
@output_option
@click.option("--report", "reports", multiple=True, callback=read_reports, metavar="FORMAT=FILE", help="A further report of the same run.")
def check_command(**options: Any) -> int:
    """Prove what PATHs hold: gates, schedules, rewrites; folders are searched.

    A gate is a function decorated with @layoutproof.gate. A schedule is JSON, of the program that PATH names (with --trace) or that
    stands beside it (conv2d.py and conv2d.jsonl); a .jsonl file has one a line. A rewrite is a text with the functions `before` and
    `after`, and comment lines that say which store computes which.

    Exit codes: 0 all proved; 1 something refuted; 2 something is wrong with the input; 3 something unknown or vacuous.
    """
    from layoutproof.cli.gating import request_of, run_gate

    return run_gate(request_of(**options))
