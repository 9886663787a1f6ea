"""Options that several commands share. It loads fast: `option_values` turns their texts into values."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from layoutproof.verify.values.fast_math import FastMathSet

Decorator = Callable[[Any], Any]
Request = TypeVar("Request")
LARGEST_SEED = (1 << 63) - 1
NOTATIONS = ("lambda", "string", "cute", "triton", "mlir", "onednn", "einops", "isl", "strides", "xla", "mma")
"""Those of `ir/notations/notation.py`, which takes longer to load than help may."""
GATE_FORMATS = ("text", "json", "junit", "sarif", "github", "html")


def takes(kind: type[Request]) -> Callable[[Callable[[Request], int]], Callable[..., int]]:
    """For a command that takes its parameters as one object, a dataclass with a field for each."""

    def decorate(command: Callable[[Request], int]) -> Callable[..., int]:
        @wraps(command)
        def called(**options: Any) -> int:
            return command(kind(**options))

        return called

    return decorate


# Generic in newer versions of click only.
if TYPE_CHECKING:
    _PathType = click.ParamType[Path]
else:
    _PathType = click.ParamType


class FilePath(_PathType):
    """A path; whether it can be read or written is checked by its user. Shells complete it with names of files."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path. Raises click.BadParameter for text that cannot name a file."""
        if "\0" in str(value):
            raise click.BadParameter("a path has no null byte")
        return Path(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Leave it to the shell."""
        return [CompletionItem(incomplete, type="file")]


file_path = FilePath()


class Number(click.FloatRange):
    """A number in a range; `nan`, which passes range comparisons, is refused."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        """The number. Raises click.BadParameter."""
        number = super().convert(value, parameter, context)
        if number != number:
            self.fail(f"{value} is no number.", parameter, context)
        return number


def _group(*options: Decorator) -> Decorator:
    """Several options as one, in the order of the help text."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


output_option = click.option("-o", "--output", type=file_path, metavar="FILE", help="Write there instead of printing.")


def format_option(*formats: str) -> Decorator:
    """`--format`; the first is the default."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="Form of the output.",
    )


def _set_verbose(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    from layoutproof.cli.output import VERBOSE

    context.meta[VERBOSE] = value


def _set_color(context: click.Context, parameter: click.Parameter, value: str) -> None:
    # click and rich ask the context; None leaves it to the stream.
    context.color = {"always": True, "never": False}.get(value)


_color_option = click.option(
    "--color",
    type=click.Choice(("auto", "always", "never")),
    default="auto",
    expose_value=False,
    callback=_set_color,
    help="Colours: on terminals (auto), always, or never.",
)


def verbose_for(text: str) -> Decorator:
    """`--verbose`, with its help, and `--color`."""
    return _group(
        click.option("-v", "--verbose", is_flag=True, expose_value=False, callback=_set_verbose, help=text),
        _color_option,
    )


verbose_option = verbose_for("Name the engine behind each verdict.")


result_options = _group(format_option("text", "json"), output_option)
size_option = click.option(
    "--size", "sizes", multiple=True, metavar="NAME=N", help="The value of a symbolic extent; may be repeated."
)
notation_options = _group(
    click.option(
        "--notation",
        type=click.Choice(NOTATIONS),
        help="The notation of the text, if it could be several.",
    ),
    click.option("--axes", multiple=True, metavar="NAME=N,...", help="Lengths of axes in an einops pattern."),
)
seed_option = click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0, LARGEST_SEED), help="Seed of the random inputs."
)
function_option = click.option("--function", metavar="NAME", help="The function, if the program has several.")
trace_option = click.option(
    "--trace", "trace_path", type=file_path, metavar="TRACE.json", help="A schedule to apply first."
)
certificate_option = click.option(
    "--certificate", type=file_path, metavar="FILE", help="Write what was proved there, for `layoutproof recheck`."
)
cache_options = _group(
    click.option(
        "--cache", type=file_path, metavar="PLACE", help="The proof cache: an .sqlite file, or a shared folder."
    ),
    click.option("--no-cache", is_flag=True, help="Prove everything anew."),
)
jobs_option = click.option(
    "--jobs", type=click.IntRange(1, 256), metavar="N", help="Processes to use; one for each core by default."
)


def number_of_jobs(jobs: int | None) -> int:
    """The given number, or one for each core available to this process."""
    if jobs is not None:
        return jobs
    # Not all systems tell which cores a process may use.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def target_options(device: str, targets: Sequence[str] = ("c", "opencl")) -> Decorator:
    """The target of code generation and its device; `device` is help text."""
    return _group(
        click.option(
            "--target",
            type=click.Choice(targets),
            default="c",
            show_default=True,
            help="What code is generated.",
        ),
        click.option(
            "--device", metavar="NAME", help=f"The OpenCL device{device}: a part of its name, as `devices` lists it."
        ),
        click.option(
            "--device-profile",
            "profile",
            metavar="WxH",
            help="Also refuse images that are larger, in texels, such as 16384x16384.",
        ),
    )


def proof_options(strictness: str, default: str = "reals") -> Decorator:
    """Which assumptions proofs may use, and where proofs are written; `strictness` is the help of the first."""
    return _group(
        click.option(
            "--strictness",
            "allowed",
            callback=_read_strictness,
            default=default,
            show_default=True,
            metavar="ASSUMPTIONS",
            help=strictness,
        ),
        click.option(
            "--budget",
            type=Number(0.001, 1000),
            default=1.0,
            show_default=True,
            metavar="FACTOR",
            help="A factor on all budgets.",
        ),
        certificate_option,
    )


def _read_strictness(context: click.Context, parameter: click.Parameter, text: str) -> FastMathSet:
    """A preset, or fast-math assumptions by name. Raises click.BadParameter for other words."""
    from layoutproof.verify.values.fast_math import parse_fast_math

    try:
        return parse_fast_math(text)
    except ValueError as problem:
        raise click.BadParameter(str(problem)) from problem


policy_options = _group(
    click.option(
        "--select",
        multiple=True,
        metavar="CODES",
        help="Only these codes fail the run: LP222, or LP2 for all that begin so.",
    ),
    click.option("--ignore", multiple=True, metavar="CODES", help="These codes fail no run."),
    click.option("--allow-unknown", is_flag=True, help="What is neither proved nor refuted fails no run."),
    click.option(
        "--trust",
        type=click.Choice(("checker", "kernel")),
        default="checker",
        show_default=True,
        help="kernel: a step that the kernel does not accept fails the run.",
    ),
    click.option("--baseline", type=file_path, metavar="FILE", help="Known findings, which fail no run."),
    click.option(
        "--write-baseline", type=file_path, metavar="FILE", help="Write this run's findings there, as known ones."
    ),
)


def limit_options(timeout: str, memory: str) -> Decorator:
    """Limits of an item; both help texts are given."""
    return _group(
        click.option("--timeout", type=Number(0, 1_000_000), metavar="SECONDS", help=timeout),
        click.option("--memory", type=click.IntRange(64), metavar="MB", help=memory),
    )


def _read_reports(
    context: click.Context, parameter: click.Parameter, texts: Sequence[str]
) -> tuple[tuple[str, Path], ...]:
    """`FORMAT=FILE` as pairs. Raises click.BadParameter for other texts."""
    found: list[tuple[str, Path]] = []
    for text in texts:
        form, equals, path = text.partition("=")
        if form not in GATE_FORMATS or not equals or not path:
            raise click.BadParameter(f"{text!r} is not FORMAT=FILE with a format of {', '.join(GATE_FORMATS)}")
        found.append((form, file_path.convert(path, parameter, context)))
    return tuple(found)


report_options = _group(
    click.option(
        "--stable", is_flag=True, help="Leave out times and cache hits: runs that find the same give the same bytes."
    ),
    format_option(*GATE_FORMATS),
    output_option,
    click.option(
        "--report",
        "reports",
        multiple=True,
        callback=_read_reports,
        metavar="FORMAT=FILE",
        help="A further report of the same run.",
    ),
    click.option("--open", "open_report", is_flag=True, help="Show the HTML report, which is written, in a browser."),
    click.option("-q", "--quiet", is_flag=True, help="Print only what is not proved, and the count."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOptions:
    """The options that `check` and `compare` share: proofs, policy, limits, cache and reports."""

    allowed: FastMathSet
    budget: float
    certificate: Path | None
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    allow_unknown: bool
    trust: str
    baseline: Path | None
    write_baseline: Path | None
    timeout: float | None
    memory: int | None
    cache: Path | None
    no_cache: bool
    stable: bool
    output_format: str
    output: Path | None
    reports: tuple[tuple[str, Path], ...]
    open_report: bool
    quiet: bool

    @property
    def html(self) -> Path | None:
        """The HTML report that is written to a file."""
        written = (*self.reports, *([(self.output_format, self.output)] if self.output is not None else ()))
        return next((path for form, path in written if form == "html"), None)

    @property
    def forms(self) -> set[str]:
        """The formats of everything that is printed or written."""
        return {self.output_format, *(form for form, _ in self.reports)}
