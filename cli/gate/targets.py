"""Where a run writes: each file once, and none that it reads, so that no report takes the place of a program or of another report."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from layoutproof.cli import codes
from layoutproof.cli.output import check_writable
from layoutproof.ir.diagnostic import error

_TRACES = (".json", ".jsonl")


def check_targets(targets: Iterable[tuple[str, Path | None]], read: Sequence[Path], baseline: Path | None = None) -> None:
    """Raise LayoutproofError unless all files can be written, each by one option; `targets` has options and files, `read` the inputs.

    A program and schedules beside it are read with each other, and so is every program, gate and schedule below a folder. A baseline
    that is read may be written anew, by its own option.
    """
    taken: dict[object, str] = {}
    for option, path in targets:
        if path is None:
            continue
        check_writable(path)
        key = _identity(path)
        if key in taken:
            raise error(codes.OUTPUT, f"{option} and {taken[key]} would both write {path}", help="give each report a file of its own")
        taken[key] = option
        sources = read if baseline is None or option == "--write-baseline" else (*read, baseline)
        source = next((source for source in sources if _is_read(path, source)), None)
        if source is not None:
            where = f", below {source}" if source.is_dir() else ""
            message = f"{option} would overwrite {path}, which this run reads{where}"
            raise error(codes.OUTPUT, message, help="give the output another name")


def _is_read(path: Path, source: Path) -> bool:
    """Whether an existing file is, or may be, read by a run over a source."""
    if not path.is_file() or not source.exists():
        return False
    program = path.with_suffix(".py")
    if source.is_dir():
        below = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(source))
        return below and (path.suffix == ".py" or (path.suffix in _TRACES and program.is_file()))
    beside = path.suffix in (".py", *_TRACES) and _identity(program) == _identity(source.with_suffix(".py"))
    return beside or _identity(path) == _identity(source)


def _identity(path: Path) -> object:
    """What two names of one file have in common, whether there is such a file or not."""
    try:
        found = path.stat()
    except OSError:
        return os.path.realpath(path)
    return found.st_dev, found.st_ino
