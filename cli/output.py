"""Output: files written whole or not at all, none that the run reads; colour and a progress bar on terminals only;
texts that can be printed there.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Protocol, TextIO, TypeVar

import click

from layoutproof.cli import codes
from layoutproof.ir.diagnostic import Diagnostic, error
from layoutproof.verify.certificate.sealed_files import Content, check_place, write_whole_files, writing_whole

if TYPE_CHECKING:
    from rich.console import Console

    from layoutproof.verify.verdict.verdict import Status


# By a verdict's word, which a status is: so this file needs neither the verdicts nor rich before there is something to
# show.
_EXIT_CODES = {"proved": 0, "refuted": 1, "unknown": 3, "vacuous": 3}
STYLES = {
    "refuted": "bold red",
    "error": "bold red",
    "unknown": "bold yellow",
    "vacuous": "bold yellow",
    "proved": "bold green",
}
"""How a word for an outcome is shown; the worst first, as runs count them."""
_PLAIN_WIDTH = 100
VERBOSE = "layoutproof.verbose"
Found = TypeVar("Found")
FoundIn = TypeVar("FoundIn", contravariant=True)
Advance = Callable[[str], None]


class Render(Protocol[FoundIn]):
    """A renderer; with `markup`, it writes rich's markup."""

    def __call__(self, found: FoundIn, /, *, markup: bool = False) -> str:
        """The text, whole lines."""


def is_verbose() -> bool:
    """Whether the command that runs was called with --verbose."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(VERBOSE))


def exit_code(status: Status) -> int:
    """The process's exit code for the worst verdict of a run."""
    return _EXIT_CODES[status]


def console() -> Console:
    """Standard output: coloured and as wide as the terminal; else plain and of fixed width. A closed pipe raises
    BrokenPipeError.
    """
    # Rich takes long to load.
    from rich.console import Console

    class PipeConsole(Console):
        def on_broken_pipe(self) -> None:
            # The command says what it means: rich would exit with 1, which is `refuted` here.
            raise BrokenPipeError

    context = click.get_current_context(silent=True)
    color = None if context is None else context.color
    if color is not None and not (color and sys.stdout.isatty()):
        width = None if sys.stdout.isatty() else _PLAIN_WIDTH
        return PipeConsole(highlight=False, emoji=False, force_terminal=color, no_color=not color, width=width)
    if sys.stdout.isatty():
        return PipeConsole(highlight=False, emoji=False)
    return PipeConsole(highlight=False, emoji=False, no_color=True, width=_PLAIN_WIDTH)


def show(text: str) -> None:
    """Text with rich's markup on standard output. Lines are not wrapped, so that they can be copied whole."""
    console().print(readable(text), end="", soft_wrap=True)


def write_file(path: Path, data: bytes) -> None:
    """Write a file whole or not at all: into a temporary one beside it, then renamed over it.

    Raises LayoutproofError on failure; an existing file is then unchanged.
    """
    write_files({path: data})


def write_files(contents: Mapping[Path, Content]) -> None:
    """Write files that belong together: all are complete beside their places before the first takes its own.

    Raises LayoutproofError on failure; existing files are then unchanged.
    """
    write_whole_files(contents, codes.OUTPUT)


def writing(path: Path) -> AbstractContextManager[TextIO]:
    """A text file that takes its place, whole, when the block ends; after an exception nothing has changed.

    For text too long for memory. Raises LayoutproofError if it cannot be written.
    """
    return writing_whole(path, codes.OUTPUT)


def check_writable(path: Path) -> None:
    """Raise LayoutproofError now if `write_file` would later."""
    check_place(path, codes.OUTPUT)


def check_output(path: Path | None) -> None:
    """The same for an optional file."""
    if path is not None:
        check_writable(path)


def make_folder(path: Path) -> None:
    """Make a folder if it is missing. Raises LayoutproofError on failure."""
    if not path.is_dir():
        check_writable(path)
    try:
        path.mkdir(exist_ok=True)
    except FileExistsError as problem:
        raise error(codes.OUTPUT, f"cannot write into {path}: it is a file, not a folder") from problem
    except OSError as problem:
        raise error(codes.OUTPUT, f"cannot write {path}: {problem.strerror or problem}") from problem


def emit(text: str, path: Path | None, *, is_ours: bool = False) -> None:
    """Write `text` to a file, or to standard output if there is none: made harmless there, unless all of it is ours."""
    if path is not None:
        write_file(path, text.encode(errors="backslashreplace"))
    else:
        sys.stdout.write(text if is_ours else readable(text))


VERSION = 1
"""Of the form of an answer in JSON: a program that reads it need not look at more. New keys do not change it."""


def json_text(data: object) -> str:
    """Plain data as a JSON file has it."""
    return json.dumps(data, indent=2) + "\n"


def answer_text(data: object) -> str:
    """An answer in JSON; one that is an object with the version of its form."""
    return json_text({**data, "version": VERSION} if isinstance(data, dict) else data)


def tell(
    found: Found, form: str, output: Path | None, to_data: Callable[[Found], object], render: Render[Found]
) -> None:
    """Write an answer as JSON or text, into a file or to standard output, where text is styled."""
    if form == "json":
        emit(answer_text(to_data(found)), output)
    elif output is not None or not sys.stdout.isatty():
        emit(render(found), output)
    else:
        show(render(found, markup=True))


def say(diagnostics: Iterable[Diagnostic]) -> None:
    """Write messages to standard error."""
    for diagnostic in diagnostics:
        click.echo(readable(diagnostic.render()), err=True)


_TRACES = (".json", ".jsonl")


def check_targets(
    targets: Iterable[tuple[str, Path | None]], read: Sequence[Path], baseline: Path | None = None
) -> None:
    """Raise LayoutproofError unless all files can be written, each by one option. `targets`: options and files; `read`:
    the inputs.

    Schedules beside a program are read with it, and so is every program, gate and schedule below a folder. A baseline
    that is read may be rewritten by its own option.
    """
    taken: dict[object, str] = {}
    for option, path in targets:
        if path is None:
            continue
        check_writable(path)
        key = _identity(path)
        if key in taken:
            raise error(
                codes.OUTPUT,
                f"{option} and {taken[key]} would both write {path}",
                help="give each report a file of its own",
            )
        taken[key] = option
        sources = read if baseline is None or option == "--write-baseline" else (*read, baseline)
        source = next((source for source in sources if _is_read(path, source)), None)
        if source is not None:
            where = f", below {source}" if source.is_dir() else ""
            message = f"{option} would overwrite {path}, which this run reads{where}"
            raise error(codes.OUTPUT, message, help="give the output another name")


def _is_read(path: Path, source: Path) -> bool:
    """Whether a run over a source reads, or may read, an existing file."""
    if not path.is_file() or not source.exists():
        return False
    program = path.with_suffix(".py")
    if source.is_dir():
        below = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(source))
        return below and (path.suffix == ".py" or (path.suffix in _TRACES and program.is_file()))
    beside = path.suffix in (".py", *_TRACES) and _identity(program) == _identity(source.with_suffix(".py"))
    return beside or _identity(path) == _identity(source)


def _identity(path: Path) -> object:
    """A key that is the same for all names of one file, existing or not."""
    try:
        found = path.stat()
    except OSError:
        return os.path.realpath(path)
    return found.st_dev, found.st_ino


def bytes_text(number: int) -> str:
    """`5,760 B`, `17.3 kB`, `2.2 MB`, `1.1 GB`: whole ones while they are short, then in units of a thousand."""
    if number < 10_000:
        return f"{number:,} B"
    return next(
        f"{number / unit:,.1f} {name}" for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")) if number >= unit
    )


# A line that begins so is a command to a runner of GitHub Actions, which looks past blanks: a file's name may hold one.
_COMMAND = re.compile(r"^(\s*)(?=::|##\\?\[)", re.MULTILINE)
_STRANGE = "\N{REPLACEMENT CHARACTER}"


def harmless(text: str) -> str:
    """A text in which no line is a command to a runner that reads the log."""
    return _COMMAND.sub(rf"\1{_STRANGE}", text) if "::" in text or "##" in text else text


def readable(text: str) -> str:
    """A text without terminal control characters, except line ends and tabs, in which no line is a command to a runner.

    Lone surrogates stay: they are bytes of a file's name, which streams write as escapes.
    """
    if text.isprintable():
        return harmless(text)
    return harmless(
        "".join(c if c.isprintable() or c in "\n\t" or "\ud800" <= c <= "\udfff" else _STRANGE for c in text)
    )


def on_one_line(text: str) -> str:
    """The same without line ends: of a path, or of what stands between others."""
    return readable(re.sub(r"[\n\t]", _STRANGE, text))


def escaped(text: str, markup: bool) -> str:
    """The text; with `markup`, safe to stand in rich's markup."""
    if not markup:
        return text
    from rich.markup import escape  # rich takes long to load, and plain text needs none of it

    return escape(text)


def styled(text: str, status: str, markup: bool) -> str:
    """The text; with `markup`, in the style of a verdict's word."""
    return f"[{STYLES[status]}]{text}[/]" if markup else text


@contextmanager
def stages(count: int) -> Iterator[Advance]:
    """Give a function to call with the name of each of `count` stages when it begins.

    The bar is on standard error, if that is a terminal, whatever standard output is, and is removed at the end.
    """
    if not sys.stderr.isatty():
        yield _silent
        return
    # Rich takes long to load.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=count, completed=-1)

        def advance(name: str) -> None:
            progress.update(task, description=name, advance=1, refresh=True)

        yield advance


@contextmanager
def timed(advance: Advance, seconds: dict[str, float]) -> Iterator[Advance]:
    """Give a function to call like `advance`; at the end, `seconds` has the duration of each stage by name."""
    begun: list[tuple[str, float]] = []

    def end() -> None:
        if begun:
            name, start = begun.pop()
            seconds[name] = perf_counter() - start

    def told(name: str) -> None:
        end()
        advance(name)
        begun.append((name, perf_counter()))

    yield told
    end()


def _silent(name: str) -> None:
    """No bar."""
