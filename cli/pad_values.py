"""`layoutproof pad-values`: which pad values of a buffer would make guards of a block unnecessary."""

from __future__ import annotations

from pathlib import Path

import click

from layoutproof.cli.options import file_path, format_option, output_option


@click.command("pad-values")
@click.argument("program", type=file_path)
@click.option("--trace", "trace_path", type=file_path, metavar="TRACE.json", required=True, help="A schedule that re-lays the buffer.")
@click.option("--block", required=True, metavar="NAME", help="The block whose guards are to go.")
@click.option("--buffer", required=True, metavar="NAME", help="The buffer whose pad value is to be chosen.")
@click.option("--function", metavar="NAME", help="Which function, where the program has several.")
@format_option("text", "json")
@output_option
def pad_values(
    program: Path, trace_path: Path, block: str, buffer: str, function: str | None, output_format: str, output: Path | None
) -> int:
    """Try pad values for a buffer of PROGRAM that the schedule re-lays, and say which guards of a block each would remove.

    Tried are no contract, undef, the identities of the reductions seen, zero, one and the ends of the type; each answer is proved, with
    the licences that it needs. The exit code is 0 where some candidate removes a guard.
    """
    from layoutproof.cli.pad_value_search import search_pad_values

    return search_pad_values(program, trace_path, block, buffer, function, output_format, output)
