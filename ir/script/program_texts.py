"""Programs' texts for people: without layout records, which are long and repeat what the program says, and what
changed between two.
"""

from __future__ import annotations

import re

from layoutproof.ir.primfunc import LAYOUT
from layoutproof.ir.shown import ProgramDiff, ProgramText

_CONTEXT = 2


def without_records(text: str) -> ProgramText:
    """A program's text with its layout records left out."""
    return ProgramText(re.sub(rf'"{re.escape(LAYOUT)}": .*(?=}}\)$)', f'"{LAYOUT}": ...', text, flags=re.MULTILINE))


def program_diff(before: str, after: str, context: int = _CONTEXT) -> ProgramDiff:
    """The lines that differ, without layout records, as a unified diff without heads; empty where none does."""
    from difflib import unified_diff

    old, new = (without_records(text).splitlines() for text in (before, after))
    found = list(unified_diff(old, new, n=context, lineterm=""))[2:]
    return ProgramDiff("\n".join("..." if line.startswith("@@") else line for line in found))
