"""The items of a run: found lazily in paths, and divided into shards.

Items are plain data that can be sent to another process or machine.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

from layoutproof.cli import codes
from layoutproof.cli.gate.gate_sites import has_gates, mentions_layoutproof
from layoutproof.cli.gate.loading import text_of
from layoutproof.cli.gate.outcomes import Kind, Place
from layoutproof.ir.diagnostic import LayoutproofError, Source, error


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to check.

    `path`: its file, as the user named it; `line`: its line there, from 1. A gate has its function's name as `subject`
    and, if it has cases, the case's name as `case`. A trace has the program's function as `subject`, the program's file
    as `program` and the schedule's JSON as `text`; a rewrite has only the file. A comparison has the file and function
    after as `path` and `subject`, the file before as `program`, and its options as JSON in `text` (see
    `gate.judging.comparisons.Asked`).
    """

    kind: Kind
    name: str
    path: str
    line: int = 1
    subject: str = ""
    case: str | None = None
    program: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Options:
    """How items are judged; with the item and its files, all that an outcome depends on.

    `brief`: outcomes of schedules have no steps, which suffices for all formats but JSON and HTML. `fast_math`: names
    of the fast-math assumptions that proofs may use, sorted. `budget_scale` multiplies all budgets. `detail`: collect
    what the HTML report shows. `trust`: "kernel" where the kernel has to accept every step, else "checker". `cache`:
    place of the proof cache (None: no cache; "": the default place). `certificate` and `witness`: files to write, for
    runs of one item, the proof and the rewrite that a comparison found to. `doing`: a file that tells which step of a
    schedule is being proved, for a progress bar.
    """

    fast_math: tuple[str, ...]
    budget_scale: float = 1.0
    detail: bool = False
    brief: bool = False
    cache: str | None = ""
    certificate: str | None = None
    witness: str | None = None
    trust: str = "checker"
    doing: str | None = None


_SHOWN = 400  # characters of a line


def program_of(item: Item) -> str:
    """The program that an item is about, as reports name it."""
    if item.kind is Kind.TRACE:
        return f"{item.program}:{item.subject}" if item.subject else item.program
    if item.kind is Kind.COMPARISON:
        return item.program
    return item.path if item.kind is Kind.REWRITE else item.name


def place_of(item: Item) -> Place:
    """The line of an item: of the schedule, or of the `def` of the gate."""
    if item.kind is Kind.TRACE:
        text = item.text.split("\n")[0][:_SHOWN]
    else:
        try:
            text = Source(item.path, text_of(item.path)).line(item.line)[:_SHOWN]
        except LayoutproofError:
            text = ""
    return Place(item.path, item.line, 1, item.line, len(text) + 1, text)


T = TypeVar("T")

MAX_PARTS = 1_000_000
_FORM = re.compile(r"([0-9]{1,9})/([0-9]{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `number` of `parts`, counted from 1."""

    number: int
    parts: int

    def of(self, items: Iterable[T]) -> Iterator[T]:
        """The items of this part, in order. Neighbours go to different parts, since slow items often stand together."""
        return islice(items, self.number - 1, None, self.parts)

    def count(self, total: int) -> int:
        """How many of `total` items there are in this part."""
        return len(range(self.number - 1, total, self.parts))

    def __str__(self) -> str:
        return f"{self.number}/{self.parts}"


def parse_shard(text: str) -> Shard:
    """The part that `I/N` names. Raises LayoutproofError (LP529) for other texts."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise error(codes.SHARD, f"--shard {text}: expected I/N, such as 3/10 for the third of ten parts")
    number, parts = int(found[1]), int(found[2])
    if not 1 <= parts <= MAX_PARTS:
        raise error(codes.SHARD, f"--shard {text}: there can be 1 to {MAX_PARTS} parts, not {parts}")
    if not 1 <= number <= parts:
        raise error(codes.SHARD, f"--shard {text}: the part is a number from 1 to {parts}, not {number}")
    return Shard(number, parts)


_REWRITE = {"before", "after"}
_SKIPPED = {"__pycache__", "node_modules", "site-packages"}
_BUILT = {"build", "dist"}  # left out as well, which is said if there is something to check
_TRACES = (".jsonl", ".json")
_SCHEDULE = re.compile(rb'(\xef\xbb\xbf)?\s*\[\s*\[\s*"[a-z_]+"\s*,\s*\{')
_BEGINNING = 400  # bytes of a file that tell whether it is a schedule


def find_items(
    paths: Sequence[Path],
    traces: Sequence[Path] = (),
    function: str | None = None,
    remarks: list[str] | None = None,
) -> Iterator[Item]:
    """The items of `paths` in order; files of folders by name.

    With `traces`, there is one path, a program, and the items are its schedules; `function` names its function. What
    looks like something to check and yields no item is added to `remarks`. Raises LayoutproofError for a path that
    cannot be checked or has nothing to check; for missing files before anything else.
    """
    remarks = [] if remarks is None else remarks
    if traces and len(paths) != 1:
        raise error(codes.TRACES_OF_SEVERAL, f"--trace is for one program, and {len(paths)} paths are given")
    for path in (*paths, *traces):
        if not path.exists():
            raise error(codes.NOTHING_TO_CHECK, f"there is no file {path}")
        if path.is_char_device():
            raise error(codes.NOTHING_TO_CHECK, f"{path} is a device, neither a file nor a folder")
    if traces and paths[0].is_file() and _holds_gates(paths[0]):
        raise error(codes.FUNCTION, f"--trace is for a program, and {paths[0]} is a file of gates")
    for trace in traces:
        yield from _schedules(trace, paths[0], function, alone=True)
    for path in paths if not traces else ():
        items = _items_of(path, function, remarks)
        first = next(items, None)
        if first is None:
            raise error(codes.NOTHING_TO_CHECK, f"there is nothing to check in {path}", help=_HINT)
        yield first
        yield from items


_HINT = (
    "gates are functions decorated with @layoutproof.gate; schedules stand beside their program, "
    "conv2d.py and conv2d.jsonl"
)


def _items_of(path: Path, function: str | None, remarks: list[str]) -> Iterator[Item]:
    if path.is_dir():
        for file in _files(path, remarks):
            if file.suffix == ".py":
                yield from _of_file(file, function, remarks, asked=False)
            elif not file.with_suffix(".py").is_file() and _is_schedule(file):
                remarks.append(f"{file} has schedules, and there is no program {file.with_suffix('.py')}")
    elif not path.is_file():
        raise error(codes.NOTHING_TO_CHECK, f"{path} is neither a file nor a folder")
    elif path.suffix in _TRACES:
        program = path.with_suffix(".py")
        if not program.exists():
            hint = f"layoutproof check PROGRAM.py --trace {path}, or name the program {program.name}"
            raise error(codes.NO_PROGRAM, f"{path} holds schedules, and there is no program {program}", help=hint)
        yield from _schedules(path, program, function)
    else:
        yield from _of_file(path, function, remarks, asked=True)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise error(codes.FILE_ACCESS, f"{path} cannot be read: {problem.strerror}") from problem


def _files(folder: Path, remarks: list[str], seen: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """The Python files and schedules below a folder, sorted, also links that lead nowhere; without hidden folders,
    those of tools, and links that lead back.
    """
    real = folder.resolve()
    if real in seen:
        return
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.name.startswith(".") or entry.name in _SKIPPED:
            continue
        if entry.is_dir() and entry.name in _BUILT:
            remarks.extend(_left_out(entry, seen | {real}))
        elif entry.is_dir():
            yield from _files(entry, remarks, seen | {real})
        elif entry.suffix in (".py", *_TRACES) and (entry.is_file() or entry.is_symlink()):
            yield entry


def _left_out(folder: Path, seen: frozenset[Path]) -> Iterator[str]:
    """A remark if a folder that is left out has a file that may be meant to be checked."""
    for file in _files(folder, [], seen):
        if file.is_file() and (mentions_layoutproof(_bytes(file)) if file.suffix == ".py" else _is_schedule(file)):
            yield f"{folder} is left out, as a folder of built files, and has {file}; name the folder to check it"
            return


def _is_schedule(file: Path) -> bool:
    """Whether the file begins as a schedule does: `[["split", {`."""
    try:
        with file.open("rb") as opened:
            return _SCHEDULE.match(opened.read(_BEGINNING)) is not None
    except OSError:
        return False  # a link that leads nowhere


def _of_file(path: Path, function: str | None, remarks: list[str], *, asked: bool) -> Iterator[Item]:
    """The items of a Python file. A file named by the user must have some; others in a folder are passed over, with a
    remark if they look as if they should have some.
    """
    try:
        text = text_of(str(path))
    except LayoutproofError:
        # Another encoding, or unreadable. A file that may have gates is reported as an item.
        if asked or not path.is_file() or mentions_layoutproof(raw := _bytes(path)) or b"gate" in raw:
            yield Item(Kind.GATE, str(path), str(path))
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # Whether it was to be a program or gates, the reader of the one or the other says what is wrong.
        if asked or mentions_layoutproof(text) or "gate" in text or "def before" in text or _beside(path):
            yield _broken(path, text)
        else:
            remarks.append(f"{path} is not Python that this Python reads, so it has no gates")
        return
    yield from _of_tree(path, tree, function, remarks, asked=asked)


def _of_tree(path: Path, tree: ast.Module, function: str | None, remarks: list[str], *, asked: bool) -> Iterator[Item]:
    gates = has_gates(tree, path)
    rewrite = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)} == _REWRITE
    if asked and function is not None and (gates or rewrite):
        what = "a file of gates" if gates else "a rewrite"
        raise error(codes.FUNCTION, f"--function names a function of a program, and {path} is {what}")
    if gates:
        yield from gate_items(path, remarks)
    elif rewrite:
        yield Item(Kind.REWRITE, str(path), str(path))
    elif beside := _beside(path):
        for trace in beside:
            yield from _schedules(trace, path, function, named=asked)
    elif asked:
        schedules = f"a schedule is given by --trace, or stands beside it as {path.stem}.json or {path.stem}.jsonl"
        hint = f"{schedules}; {_HINT.split(';')[0]}; two programs are compared by `layoutproof compare`"
        raise error(codes.NOTHING_TO_CHECK, f"{path} has no gate, is no rewrite, and has no schedule", help=hint)
    else:
        remarks.extend(_missed(path, tree))


def _missed(path: Path, tree: ast.Module) -> Iterator[str]:
    """A remark on a file that was passed over, if it looks as if there should be something to check."""
    if mentions_layoutproof(text_of(str(path))):
        yield f"{path} mentions layoutproof, and makes no gate"
    elif {node.name for node in tree.body if isinstance(node, ast.FunctionDef)} > _REWRITE:
        yield f"{path} has the functions before and after, and others, so it is no rewrite"


def _holds_gates(path: Path) -> bool:
    try:
        return has_gates(ast.parse(text_of(str(path))), path)
    except (LayoutproofError, SyntaxError, ValueError, RecursionError, MemoryError):
        return False  # reading it as a program reports the error


def _beside(path: Path) -> list[Path]:
    """The schedule files of a program: beside it, under the same name."""
    return [path.with_suffix(suffix) for suffix in _TRACES if path.with_suffix(suffix).is_file()]


def _broken(path: Path, text: str) -> Item:
    if "gate" not in text and _beside(path):
        return Item(Kind.TRACE, str(path), str(path), program=str(path), text="[]")
    return Item(Kind.REWRITE if "def before" in text else Kind.GATE, str(path), str(path))


def gate_items(path: Path, remarks: list[str]) -> Iterator[Item]:
    """The gates of a file, one item per case; for a file that cannot be loaded one item without a subject, whose
    judging fails. Functions that would make more gates, or none at all, are added to `remarks`.
    """
    from layoutproof.cli.gate.loading import load_gates

    try:
        loaded = load_gates(str(path))
    except LayoutproofError:
        # Judging loads it again and reports the error in its place among the others.
        yield Item(Kind.GATE, str(path), str(path))
        return
    for site in loaded.uncalled:
        where = f"{path}:{site.node.lineno}"
        remarks.append(f"{where}: {site.scope}() makes the gate {site.name}, and is not called when the file is loaded")
    if not loaded.gates and not loaded.uncalled:
        remarks.append(f"{path} uses layoutproof's gate, and makes none")
    for name, gate in loaded.gates.items():
        for case in gate.cases:
            whole = f"{path}::{name}" + (f"[{case.name}]" if case.name is not None else "")
            yield Item(Kind.GATE, whole, str(path), loaded.lines[name], name, case.name)


def _schedules(
    trace: Path, program: Path, function: str | None, *, alone: bool = False, named: bool = True
) -> Iterator[Item]:
    """The schedules of a file: one, or one per line that is not blank, read lazily."""
    from layoutproof.cli.gate.loading import read_program

    try:
        func = read_program(str(program), function)
    except LayoutproofError:
        if alone:
            raise
        # Reported once, as an item: judging it fails in the same way.
        subject = function if function is not None else ""
        yield Item(Kind.TRACE, str(program), str(program), subject=subject, program=str(program), text="[]")
        return
    title = f"{program}:{func.name}"
    if trace.suffix != ".jsonl":
        yield Item(Kind.TRACE, f"{title} {trace}", str(trace), 1, func.name, None, str(program), _text(trace))
        return
    if not trace.is_file():
        raise error(codes.FILE_ACCESS, f"{trace} is no file; schedules of a pipe are given as one, in JSON")
    found = False
    for number, line in _lines(trace):
        found = True
        yield Item(Kind.TRACE, f"{title} {trace}:{number}", str(trace), number, func.name, None, str(program), line)
    if not found and named:
        raise error(codes.NOTHING_TO_CHECK, f"{trace} has no line with a schedule")
    if not found:
        # In a folder it stands among the others, and proves nothing.
        yield Item(Kind.TRACE, f"{title} {trace}", str(trace), 1, func.name, None, str(program), "[]")


def _text(path: Path) -> str:
    """The text of a schedule. Bytes that are not UTF-8 are kept; reading the schedule reports them as part of its
    outcome.
    """
    try:
        return text_of(str(path))
    except LayoutproofError:
        return _bytes(path).decode("utf-8-sig", errors="surrogateescape")


def _lines(path: Path) -> Iterable[tuple[int, str]]:
    """The lines of a file that are not blank, with their numbers, read lazily. Raises LayoutproofError."""
    try:
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except OSError as problem:
        raise error(codes.FILE_ACCESS, f"{path} cannot be read: {problem.strerror}") from problem
