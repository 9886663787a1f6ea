"""Bank conflicts as text."""

from __future__ import annotations

from layoutproof.cli.output import escaped
from layoutproof.ir.diagnostic import counted
from layoutproof.ir.index_map import index_map_text
from layoutproof.verify.layouts.accesses import AccessReport
from layoutproof.verify.layouts.conflict_free import ConflictFree
from layoutproof.verify.layouts.conflicts import Coalescing, Conflicts
from layoutproof.verify.layouts.symbolic_conflicts import Counts, SymbolicReport

_WIDTH = 16


def render_conflicts(found: AccessReport, markup: bool = False) -> str:
    """The layout, then the counts of each pattern, then the smallest change without conflicts."""
    rows = [("layout", found.layout.text), ("index map", index_map_text(found.layout.index_map))]
    for access, conflicts, coalescing in found.patterns:
        rows += [("", ""), ("access", access.text), *_counts(conflicts), ("global memory", _transactions(coalescing))]
    if found.found is not None:
        rows += [("", ""), ("swizzle", _swizzle(found.found)), ("padding", _padding(found.found))]
    return "".join(f"{label:<{_WIDTH}}{escaped(text, markup)}".rstrip() + "\n" for label, text in rows)


def render_symbolic(found: SymbolicReport, markup: bool = False) -> str:
    """The counts of each pattern for all sizes: by remainder, then the sizes that differ."""
    memory = found.memory
    rows = [("layout", found.layout.text), ("index map", index_map_text(found.layout.index_map))]
    for pattern in found.patterns:
        banks = f"{memory.banks} banks of {memory.width} bytes, {memory.lanes} lanes a phase"
        rows += [("", ""), ("access", pattern.access.text), ("memory", banks)]
        rows.append(("sizes", f"all {pattern.symbol} >= {pattern.least}, by {pattern.symbol} % {pattern.period}"))
        rows += [(_remainders(rest, pattern.period), _size_counts(counts)) for counts, rest in pattern.classes]
        rows += [(f"{pattern.symbol} = {size}", _size_counts(counts)) for size, counts in pattern.exceptions]
    return "".join(f"{label:<{_WIDTH}}{escaped(text, markup)}".rstrip() + "\n" for label, text in rows)


def _size_counts(counts: Counts) -> str:
    conflicts = f"{counts.rounds - counts.phases} conflicts, {counts.rounds} rounds for {counts.phases} phases"
    aligned = counted(counts.vector, "element", "elements")
    return f"{conflicts}; {counts.transactions} transactions; aligned to {aligned}"


def _remainders(rest: tuple[int, ...], period: int) -> str:
    """The remainders as an arithmetic progression that goes on for the whole period, where they are one."""
    if len(rest) == period:
        return "any"
    step = rest[1] - rest[0] if len(rest) > 1 else period
    if period % step == 0 and rest == tuple(range(rest[0], period, step)) and len(rest) > 3:
        return f"{rest[0]} mod {step}"
    text = ", ".join(map(str, rest))
    return text + " " if len(text) >= _WIDTH else text


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
