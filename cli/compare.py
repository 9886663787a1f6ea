"""`layoutproof compare`: two given programs, and whether the second does what the first does, up to how buffers are stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from layoutproof.cli.check import FORMATS, Number, read_reports
from layoutproof.cli.options import file_path, output_option, strictness_option


@click.command("compare")
@click.argument("before", type=file_path, metavar="BEFORE.py")
@click.argument("after", type=file_path, metavar="AFTER.py")
@click.option("--layout", "layouts", multiple=True, metavar="NAME=MAP", help="How AFTER stores BEFORE's parameter NAME: a lambda.")
@click.option("--pad", "pads", multiple=True, metavar="NAME=VALUE", help="What NAME's padding holds: T.float32(0), T.undef(), None.")
@click.option("--match", "matches", multiple=True, metavar="NEW=OLD", help="AFTER's parameter NEW is BEFORE's OLD; else by position.")
@click.option("--where", metavar="CONDITION", help="What callers vouch for of the names in shapes, such as 'n >= 1'.")
@click.option("--function", metavar="NAME[=NAME]", help="Which function, where a file has several: before's, and after's if it differs.")
@strictness_option("The float licences that the proof may use, the fewest that suffice: ieee (none), finite, reals (all), or words.")
@click.option("--budget", type=Number(0.001, 1000), default=1.0, show_default=True, metavar="FACTOR", help="A factor on all budgets.")
@click.option("--certificate", type=file_path, metavar="FILE", help="Write what was proved there, for `layoutproof recheck`.")
@click.option("--witness", type=file_path, metavar="FILE", help="Write there which store computes which, for `layoutproof check`.")
@click.option("--select", multiple=True, metavar="CODES", help="Only these codes fail the run: LP222, or LP2 for all that begin so.")
@click.option("--ignore", multiple=True, metavar="CODES", help="These codes fail no run.")
@click.option("--allow-unknown", is_flag=True, help="What is neither proved nor refuted fails no run.")
@click.option("--baseline", type=file_path, metavar="FILE", help="Known findings, which fail no run.")
@click.option("--write-baseline", type=file_path, metavar="FILE", help="Write this run's findings there, as known ones.")
@click.option("--timeout", type=Number(0, 1_000_000), metavar="SECONDS", help="End the comparison if it takes longer; 0: never.")
@click.option("--memory", type=click.IntRange(64), metavar="MB", help="End the comparison if it takes more.")
@click.option("--cache", "cache", type=file_path, metavar="PLACE", help="The proof cache: an .sqlite file, or a shared folder.")
@click.option("--no-cache", is_flag=True, help="Prove everything anew.")
@click.option("--stable", is_flag=True, help="Leave out times and cache hits: runs that find the same give the same bytes.")
@click.option("--format", "form", type=click.Choice(FORMATS), default=FORMATS[0], show_default=True, help="Form of the output.")
@output_option
@click.option("--report", "reports", multiple=True, callback=read_reports, metavar="FORMAT=FILE", help="A further report of the same run.")
def compare_command(before: Path, after: Path, **options: Any) -> int:
    """Does AFTER do what BEFORE does, up to these layouts?

    Each file holds a function in TVM's script syntax. Nothing needs to be known of how one became the other: which store computes which
    is looked for, and so are layouts and pad values that are not given. What was found is proved, or it does not count. A parameter that
    has one shape in both programs keeps its cells unless --layout says otherwise.

    MAP is a lambda over logical indices ('lambda n, h, w, c: [n, c//4, h, w, c%4]') or two layouts ('NHWC->NCHW4c').

    Exit codes: 0 proved; 1 refuted; 2 something is wrong with the input; 3 unknown or vacuous.
    """
    from layoutproof.cli.comparing import request_of
    from layoutproof.cli.gating import run_gate

    return run_gate(request_of(before, after, **options))
