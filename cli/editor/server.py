"""The language server: documents as they are typed, checked in a worker process, answered over standard input and
output.

Only this file knows the protocol (`lsprotocol`, `pygls`).
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

import click
from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import PositionCodec, ServerTextPosition, ServerTextRange

from layoutproof import __version__
from layoutproof.cli import codes
from layoutproof.cli.catalogue import has_code, sentence_of
from layoutproof.cli.configuration import read_configuration
from layoutproof.cli.editor.hovers import Shown
from layoutproof.cli.editor.notes import Document, Note, Range
from layoutproof.cli.editor.work import Cancelled, Done, Rules, Task, WorkerClient
from layoutproof.cli.gate.check_items import Options
from layoutproof.cli.gate.policy import Baseline, Policy, read_codes
from layoutproof.ir.diagnostic import LayoutproofError, split_lines
from layoutproof.verify.values.fast_math import parse_fast_math
from layoutproof.verify.workers.endings import Limits, NoWorker

_PAUSE = 0.15  # seconds without a change before a text is checked
_GRACE = 0.3  # seconds that the check of a former text may still take
_HOVER_SECONDS = 10.0
_MOST_PICTURE = 200_000  # bytes of a picture in a hover
_SUFFIXES = (".py", ".json", ".jsonl")
_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "information": types.DiagnosticSeverity.Information,
    "hint": types.DiagnosticSeverity.Hint,
}


@dataclass
class _Open:
    """An open document: how often its text has changed, after which change it was checked, and what was found."""

    changes: int = 0
    checked: int = -1
    notes: tuple[Note, ...] = ()


class Server(LanguageServer):
    """The server with its open documents and its two workers: one checks, one answers hovers."""

    def __init__(self, seconds: float | None, check: click.Command) -> None:
        super().__init__("layoutproof", __version__)
        self.check = check
        self.open: dict[str, _Open] = {}
        self.running: tuple[str, Task] | None = None
        self.tasks: set[asyncio.Task[None]] = set()
        self.checking = WorkerClient(Limits(seconds=seconds))
        self.hovering = WorkerClient(Limits(seconds=_HOVER_SECONDS))
        self.turn, self.hover_turn = asyncio.Lock(), asyncio.Lock()

    # --- checks

    def changed(self, uri: str) -> None:
        """Check a document anew; a check of its former text ends."""
        seen = self.open.setdefault(uri, _Open())
        seen.changes += 1
        self._end(uri)
        task = asyncio.get_running_loop().create_task(self._check(uri, seen, seen.changes))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def closed(self, uri: str) -> None:
        """Forget a document and its diagnostics."""
        self.open.pop(uri, None)
        self._end(uri)
        self._publish(uri, (), [], None)

    def _end(self, uri: str) -> None:
        """End what is checked of a document. What is done in a moment is left to it: a new process takes longer."""
        running = self.running
        if running is not None and running[0] == uri:
            asyncio.get_running_loop().call_later(_GRACE, self._cancel, running)

    def _cancel(self, running: tuple[str, Task]) -> None:
        if self.running is running:
            self.checking.cancel(running[1])

    async def _check(self, uri: str, seen: _Open, change: int) -> None:
        await asyncio.sleep(_PAUSE)
        async with self.turn:
            document = self._document(uri)
            if document is None or self._is_past(uri, seen, change) or (rules := self._rules(uri)) is None:
                return
            version = self.workspace.get_text_document(uri).version
            notes: list[Note] = []
            waiting: list[Task] = [Task(document, rules)]
            while waiting:
                done = await self._done(uri, waiting.pop(0))
                if self._is_past(uri, seen, change):
                    return
                notes += done.notes
                waiting += [Task(document, rules, item) for item in done.items]
                seen.notes, seen.checked = tuple(dict.fromkeys(notes)), change
                self._publish(uri, seen.notes, split_lines(document.text), version)

    def _is_past(self, uri: str, seen: _Open, change: int) -> bool:
        """Whether a text was changed or closed since."""
        return seen.changes != change or self.open.get(uri) is not seen

    async def _done(self, uri: str, task: Task) -> Done:
        """What the worker finds; nothing if the text was changed meanwhile."""
        self.running = (uri, task)
        try:
            return await asyncio.to_thread(self.checking.run, task)
        except Cancelled:
            return Done()
        except NoWorker as problem:
            return Done((Note(codes.WORKER_DIED, str(problem), Range(0, 0, 0, 0), "warning"),))
        finally:
            self.running = None

    def _publish(self, uri: str, notes: tuple[Note, ...], lines: list[str], version: int | None) -> None:
        found = [self._diagnostic(note, lines) for note in notes]
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))

    # --- what workers are told

    def _document(self, uri: str) -> Document | None:
        path = to_fs_path(uri)
        if path is None or uri not in self.open or Path(path).suffix not in _SUFFIXES:
            return None
        texts = {name: self.workspace.get_text_document(name).source for name in self.open}
        others = tuple((str(to_fs_path(name)), text) for name, text in texts.items() if name != uri)
        return Document(path, texts[uri], others)

    def _rules(self, uri: str) -> Rules | None:
        path = Path(to_fs_path(uri) or ".")
        folders = [Path(to_fs_path(folder.uri) or ".") for folder in self.workspace.folders.values()]
        root = next((folder for folder in folders if path.is_relative_to(folder)), path.parent)
        try:
            return _rules_of(root, self.check)
        except (LayoutproofError, click.UsageError) as problem:
            said = problem.diagnostics[0].message if isinstance(problem, LayoutproofError) else problem.format_message()
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"layoutproof: {said}"))
            return None

    # --- hovers and actions

    async def hover(self, uri: str, position: types.Position) -> types.Hover | None:
        """What is shown at a position: what its notes mean, and what is known of the map or buffer there."""
        document, rules = self._document(uri), self._rules(uri)
        if document is None or rules is None:
            return None
        lines = split_lines(document.text)
        at = self._codec.position_from_client_units(lines, position)
        async with self.hover_turn:
            try:
                task = Task(document, rules, position=(at.line, at.character))
                shown = (await asyncio.to_thread(self.hovering.run, task)).shown
            except (Cancelled, NoWorker):
                shown = None
        notes = [note for note in self.open[uri].notes if note.range.holds(at.line, at.character)]
        meanings = [f"{code}: {sentence_of(code)}" for code in dict.fromkeys(n.code for n in notes) if has_code(code)]
        if shown is None and not meanings:
            return None
        range = None if shown is None else self._range(shown.range, lines)
        return types.Hover(self._markup(shown, meanings), range)

    def _markup(self, shown: Shown | None, meanings: list[str]) -> types.MarkupContent:
        asked = self.client_capabilities.text_document
        forms = (asked.hover.content_format if asked is not None and asked.hover is not None else None) or ()
        if types.MarkupKind.Markdown not in forms:
            texts = [*meanings, *([shown.text] if shown is not None else ())]
            return types.MarkupContent(types.MarkupKind.PlainText, "\n\n".join(texts))
        parts = list(meanings)
        if shown is not None:
            parts.append(f"```text\n{shown.text}\n```")
            if shown.picture is not None and len(shown.picture) <= _MOST_PICTURE:
                data = base64.b64encode(shown.picture.encode()).decode()
                parts.append(f"![the layout](data:image/svg+xml;base64,{data})")
                parts += [shown.caption] if shown.caption else []
        return types.MarkupContent(types.MarkupKind.Markdown, "\n\n".join(parts))

    def actions(self, uri: str, asked: types.Range) -> list[types.CodeAction]:
        """The remedies of notes in a range."""
        seen = self.open.get(uri)
        if seen is None or not seen.notes:
            return []
        document = self.workspace.get_text_document(uri)
        lines = split_lines(document.source)
        span = self._codec.range_from_client_units(lines, asked)
        found = []
        for note in seen.notes:
            start, end = (note.range.line, note.range.column), (note.range.end_line, note.range.end_column)
            if start <= (span.end.line, span.end.character) and (span.start.line, span.start.character) <= end:
                for fix in note.fixes:
                    edits = [types.TextEdit(self._range(range, lines), text) for range, text in fix.edits]
                    edit = types.WorkspaceEdit(changes={uri: edits})
                    told = [self._diagnostic(note, lines)]
                    found.append(types.CodeAction(fix.title, types.CodeActionKind.QuickFix, told, edit=edit))
        return found if seen.checked == seen.changes else []

    # --- the client's units

    @property
    def _codec(self) -> PositionCodec:
        return self.workspace.position_codec

    def _range(self, range: Range, lines: list[str]) -> types.Range:
        start = ServerTextPosition(range.line, range.column)
        end = ServerTextPosition(range.end_line, range.end_column)
        return self._codec.range_to_client_units(lines or [""], ServerTextRange(start, end))

    def _diagnostic(self, note: Note, lines: list[str]) -> types.Diagnostic:
        related = []
        for path, range, word in note.related:
            uri = from_fs_path(str(Path(path).absolute())) or f"file://{quote(path)}"
            place = types.Location(uri, self._range(range, _lines_of(path)))
            related.append(types.DiagnosticRelatedInformation(place, word))
        return types.Diagnostic(
            self._range(note.range, lines),
            note.message,
            _SEVERITIES[note.severity],
            note.code,
            source="layoutproof",
            related_information=related or None,
        )


def _lines_of(path: str) -> list[str]:
    try:
        return split_lines(Path(path).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return [""]


def new_server(seconds: float | None, check: click.Command) -> Server:
    """A server with its features."""
    server = Server(seconds, check)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def did_open(params: types.DidOpenTextDocumentParams) -> None:
        server.changed(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def did_change(params: types.DidChangeTextDocumentParams) -> None:
        server.changed(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def did_save(params: types.DidSaveTextDocumentParams) -> None:
        # Modules and programs that other documents use are read from their files: all is looked at anew.
        async with server.turn:
            server.checking.close()
        for uri in list(server.open):
            server.changed(uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def did_close(params: types.DidCloseTextDocumentParams) -> None:
        server.closed(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        return await server.hover(params.text_document.uri, params.position)

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix]),
    )
    async def actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        return server.actions(params.text_document.uri, params.range)

    return server


def serve(seconds: float | None, check: click.Command) -> None:
    """Serve a client on standard input and output until it says goodbye. An item ends after so many seconds; `check` is
    the command that a configuration is of.

    What code of gate files prints would be read as messages, so standard output is moved away for all but the server.
    """
    outgoing: BinaryIO = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    server = new_server(seconds, check)
    try:
        server.start_io(sys.stdin.buffer, outgoing)
    finally:
        server.checking.close()
        server.hovering.close()


def _rules_of(root: Path, check: click.Command) -> Rules:
    """How documents of a folder are checked: as `layoutproof check` does, with the table `[tool.layoutproof]` that
    holds there. `check` is the command whose options a configuration has.

    Raises LayoutproofError or click.UsageError for a wrong configuration.
    """
    values = read_configuration(root, check, click.Context(check, info_name="check")).values
    options = Options(
        fast_math=tuple(sorted(parse_fast_math(values.get("allowed", "reals")))),
        budget_scale=float(values.get("budget", 1.0)),
        cache=values.get("cache", ""),
        trust=values.get("trust", "checker"),
    )
    baseline = Baseline.load(Path(root, values["baseline"])) if "baseline" in values else None
    select, ignore = (read_codes(values.get(key, ())) for key in ("select", "ignore"))
    return Rules(str(root), options, Policy(select, ignore, bool(values.get("allow_unknown", False)), baseline))
