"""Documents that show when they were changed: every part has a SHA-256 over itself and the part before it, the whole one over all.

A document has one text: what is read must be, byte for byte, what would be written. So a changed blank is caught as well as a
changed claim. A hash says that nobody altered a file, not that it is true: whoever rechecks a certificate also derives its
obligations again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from layoutproof.ir.diagnostic import error
from layoutproof.verify import codes

HASH = "sha256"
_START = "0" * 64

Document = dict[str, Any]


def digest(value: Any) -> str:
    """The SHA-256, in hexadecimal, of plain data in its one text."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def chained(items: Sequence[Document], start: str = _START) -> list[Document]:
    """The items, each with the hash of itself and of the hash before it."""
    found, before = [], start
    for item in items:
        bare = {key: value for key, value in item.items() if key != HASH}
        before = digest([before, bare])
        found.append({**bare, HASH: before})
    return found


def sealed(document: Document) -> Document:
    """The document with the hash of all of it."""
    bare = {key: value for key, value in document.items() if key != HASH}
    return {**bare, HASH: digest(bare)}


def to_bytes(document: Document) -> bytes:
    """The one text of a document."""
    return (json.dumps(document, indent=1, ensure_ascii=True, allow_nan=False) + "\n").encode("ascii")


def from_bytes(data: bytes, name: str) -> Document:
    """A sealed document from its text; the root hash and the text itself are checked, chains are the reader's to check.

    Raises LayoutproofError for a file that is cut off, is no such document, or was changed.
    """
    try:
        document = json.loads(data.decode("ascii"), parse_constant=_no_constant)
    except UnicodeDecodeError as problem:
        raise error(codes.CERTIFICATE_CHANGED, f"{name}: byte {problem.start} is none that was written") from problem
    except (ValueError, RecursionError) as problem:
        raise error(codes.CERTIFICATE_CHANGED, f"{name} is cut off or was changed: {problem}") from problem
    if not isinstance(document, dict) or HASH not in document:
        raise error(codes.CERTIFICATE_FORM, f"{name} is JSON, but nothing that layoutproof sealed")
    if sealed(document) != document:
        raise error(codes.CERTIFICATE_CHANGED, f"{name} was changed: the hash over all of it is another one")
    if to_bytes(document) != data:
        raise error(codes.CERTIFICATE_CHANGED, f"{name} was changed: it says what was sealed, but not as it was written")
    return document


def check_chain(items: Any, where: str, start: str = _START) -> None:
    """Raise LayoutproofError, naming the place, unless the items' hashes form a chain."""
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise error(codes.CERTIFICATE_FORM, f"{where} is no list of objects")
    for number, (item, fresh) in enumerate(zip(items, chained(items, start), strict=True), start=1):
        if item.get(HASH) != fresh[HASH]:
            raise error(codes.CERTIFICATE_CHANGED, f"{where}, number {number}: changed, or one before it was added, taken out or moved")


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")
