"""Bank conflicts as text."""

from __future__ import annotations

from layoutproof.cli.output import escaped
from layoutproof.ir.diagnostic import counted
from layoutproof.ir.index_map import index_map_text
from layoutproof.verify.layouts.accesses import AccessReport
from layoutproof.verify.layouts.conflict_free import ConflictFree
from layoutproof.verify.layouts.conflicts import Coalescing, Conflicts

_WIDTH = 16


def render_conflicts(found: AccessReport, markup: bool = False) -> str:
    """The layout, then the counts of each pattern, then the smallest change without conflicts."""
    rows = [("layout", found.layout.text), ("index map", index_map_text(found.layout.index_map))]
    for access, conflicts, coalescing in found.patterns:
        rows += [("", ""), ("access", access.text), *_counts(conflicts), ("global memory", _transactions(coalescing))]
    if found.found is not None:
        rows += [("", ""), ("swizzle", _swizzle(found.found)), ("padding", _padding(found.found))]
    return "".join(f"{label:<{_WIDTH}}{escaped(text, markup)}".rstrip() + "\n" for label, text in rows)


def _counts(found: Conflicts) -> list[tuple[str, str]]:
    memory = found.memory
    phases = counted(found.phases, "phase", "phases")
    banks = f"{memory.banks} banks of {memory.width} bytes, {memory.lanes} lanes a phase"
    rows = [("memory", banks), ("conflicts", f"{found.conflicts}: {found.rounds} rounds for {phases}")]
    if found.worst > 1:
        at = ", ".join(map(str, found.at))
        rows.append(("worst phase", f"{found.worst} words of bank {found.bank}, in the phase from ({at}) on"))
    rows.append(("aligned", f"every access begins at a multiple of {counted(found.vector, 'element', 'elements')}"))
    return rows


def _transactions(found: Coalescing) -> str:
    percent = found.ideal / found.transactions
    return f"{found.transactions} transactions of {found.segment} bytes, {found.ideal} if packed ({percent:.0%})"


def _swizzle(found: ConflictFree) -> str:
    tried = counted(found.swizzles, "swizzle", "swizzles")
    if found.swizzle is None:
        return f"none removes all conflicts ({tried} counted)"
    if found.swizzle.bits == 0:
        return "none is needed"
    return f"{found.swizzle} removes all conflicts; no swizzle of fewer bits does ({tried} counted)"


def _padding(found: ConflictFree) -> str:
    if found.padding is None:
        return f"none after every {found.row} elements removes all conflicts ({found.paddings} counted)"
    if found.padding == 0:
        return "none is needed"
    elements = counted(found.padding, "element", "elements")
    return f"{elements} after every {found.row} elements remove all conflicts; no fewer do"
