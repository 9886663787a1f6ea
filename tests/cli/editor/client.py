"""A real client of the language server: a process that speaks the protocol over pipes, as an editor does."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.uris import from_fs_path
from pytest_lsp import LanguageClient, client_capabilities, make_test_lsp_client

SECONDS = 30.0
Diagnostics = Sequence[types.Diagnostic]


def uri_of(path: Path) -> str:
    """A file's address."""
    return str(from_fs_path(str(path)))


@dataclass
class Editor:
    """A client with the version of each document that it has open."""

    client: LanguageClient
    versions: dict[str, int] = field(default_factory=dict)

    def open(self, path: Path, text: str | None = None) -> None:
        """Open a file, with another text than its own if there is one."""
        shown = path.read_text(encoding="utf-8") if text is None else text
        self.versions[uri_of(path)] = 1
        item = types.TextDocumentItem(uri_of(path), "plain", 1, shown)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def change(self, path: Path, text: str) -> None:
        """Type: the whole text anew."""
        uri = uri_of(path)
        self.versions[uri] += 1
        whole = types.TextDocumentContentChangeWholeDocument(text)
        named = types.VersionedTextDocumentIdentifier(self.versions[uri], uri)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(named, [whole]))

    def save(self, path: Path, text: str) -> None:
        """Write the file and say so."""
        path.write_text(text, encoding="utf-8")
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri_of(path))))

    def close(self, path: Path) -> None:
        """Close a document."""
        named = types.TextDocumentIdentifier(uri_of(path))
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(named))

    async def until(self, path: Path, right: Callable[[Diagnostics], bool]) -> Diagnostics:
        """The diagnostics of a file, once they are as expected. Fails after some time with what is there."""
        uri = uri_of(path)
        end = time.monotonic() + SECONDS
        while uri not in self.client.diagnostics or not right(self.client.diagnostics[uri]):
            assert time.monotonic() < end, self.client.diagnostics.get(uri)
            await asyncio.sleep(0.02)
        return self.client.diagnostics[uri]

    async def codes(self, path: Path, *codes: str) -> Diagnostics:
        """The diagnostics of a file, once they have just these codes."""
        return await self.until(path, lambda found: sorted(str(each.code) for each in found) == sorted(codes))

    async def hover(self, path: Path, line: int, column: int) -> str:
        """What is shown at a position; empty for nothing."""
        named = types.TextDocumentIdentifier(uri_of(path))
        found = await self.client.text_document_hover_async(types.HoverParams(named, types.Position(line, column)))
        if found is None:
            return ""
        assert isinstance(found.contents, types.MarkupContent)
        return found.contents.value

    async def actions(self, path: Path, range: types.Range) -> list[types.CodeAction]:
        """The remedies in a range."""
        named = types.TextDocumentIdentifier(uri_of(path))
        asked = types.CodeActionParams(named, range, types.CodeActionContext([]))
        found = await self.client.text_document_code_action_async(asked)
        return [each for each in found or () if isinstance(each, types.CodeAction)]


@asynccontextmanager
async def editor(folder: Path, client: str = "visual_studio_code", *options: str) -> AsyncIterator[Editor]:
    """A server that a client of this kind has started for a folder; both are gone afterwards."""
    made = make_test_lsp_client()
    await made.start_io(sys.executable, "-m", "layoutproof", "lsp", *options)
    capabilities = client_capabilities(client)
    folders = [types.WorkspaceFolder(uri_of(folder), folder.name)]
    await made.initialize_session(
        types.InitializeParams(capabilities=capabilities, root_uri=uri_of(folder), workspace_folders=folders)
    )
    try:
        yield Editor(made)
    finally:
        await made.shutdown_session()
        await LanguageClient.stop(made)  # type: ignore[no-untyped-call]  # the library's own, without types


def driven(script: Coroutine[Any, Any, None]) -> None:
    """Run a test's script."""
    asyncio.run(script)


def applied(text: str, action: types.CodeAction) -> str:
    """The text after a remedy of one line each, in characters of one unit."""
    assert action.edit is not None and action.edit.changes is not None
    lines = text.split("\n")
    (edits,) = action.edit.changes.values()
    for edit in sorted(edits, key=lambda each: (each.range.start.line, each.range.start.character), reverse=True):
        line = edit.range.start.line
        assert edit.range.end.line == line
        old = lines[line]
        lines[line] = old[: edit.range.start.character] + edit.new_text + old[edit.range.end.character :]
    return "\n".join(lines)
