"""Reading Triton's layouts, and those of its encodings that mean bits to bits by their own text: `#nvidia_mma`,
`#dot_op`, `#slice` and `#swizzled_shared`, on the shape of a tensor.

Source: the attributes of Triton's TritonGPU dialect, and its documentation of linear layouts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import const
from layoutproof.ir.notations.notation import Context, Notation, Scanner, WrittenLayout
from layoutproof.ir.notations.triton import (
    HARDWARE,
    Basis,
    LinearLayout,
    is_power,
    take_blocked,
    take_linear,
    tensor_extents,
    unit_basis,
)

_WHAT = "Triton layout"
_PREFIX = re.compile(r"#(?:(?:ttg|triton_gpu)\.)?")
_WORD = re.compile(r"true|false")
Step = tuple[str, int, int]
"""Bits of an input that go on along an axis, to so many times its reach; along the axis -1 they change nothing."""


def read_triton(text: str, context: Context, name: str = "<layout>") -> WrittenLayout:
    """The map of a layout; all but linear ones need the context's shape. Raises LayoutproofError."""
    layout = parse_triton(text, context, name)
    return WrittenLayout(Notation.TRITON, text, layout.index_map(), tuple(const(extent) for extent in layout.shape))


def parse_triton(text: str, context: Context, name: str = "<layout>") -> LinearLayout:
    """Read a layout as bases. Raises LayoutproofError."""
    scanner = Scanner(text, _WHAT, name)
    layout = _take(scanner, context)
    scanner.end()
    return layout


def _take(scanner: Scanner, context: Context) -> LinearLayout:
    """Read a layout from where the scanner stands."""
    start = scanner.position
    if scanner.matched(_PREFIX) is None:
        raise scanner.fail(f"'#' and the kind of a layout are expected, not {scanner.next}")
    place = scanner.position
    kind = scanner.name(f"one of {', '.join(_KINDS)}")
    reader = _KINDS.get(kind)
    if reader is None:
        raise scanner.fail(f"{kind} is none of {', '.join(_KINDS)}", place, place + len(kind))
    scanner.expect("<")
    scanner.expect("{")
    layout = reader(scanner, context, start)
    scanner.expect(">", "at the end")
    return layout


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of an encoding, each with its place. A layout in them is read when its shape is known."""

    scanner: Scanner
    start: int
    values: Mapping[str, tuple[int | list[int] | str, int, int]]

    def fail(self, message: str, name: str | None = None) -> LayoutproofError:
        """An error at an entry, or at the whole encoding."""
        if name is not None and name in self.values:
            return self.scanner.fail(message, *self.values[name][1:])
        return self.scanner.fail(message, self.start, self.scanner.position)

    def number(self, name: str, default: int | None = None) -> int:
        """An integer. Raises LayoutproofError where there is none."""
        value = self.values[name][0] if name in self.values else default
        if not isinstance(value, int):
            raise self.fail(f"{name} is {'missing' if value is None else 'an integer'}", name)
        return value

    def power(self, name: str) -> int:
        """A power of two."""
        value = self.number(name)
        if not is_power(value):
            raise self.fail(f"{name} is a power of two, not {value}", name)
        return value

    def listed(self, name: str, lengths: Sequence[int]) -> list[int]:
        """A list of integers."""
        value = self.values[name][0] if name in self.values else None
        if not isinstance(value, list) or len(value) not in lengths:
            expected = f"a list of {' or '.join(map(str, lengths))} integers"
            raise self.fail(f"{name} is {'missing' if value is None else expected}", name)
        return value

    def powers(self, name: str, lengths: Sequence[int]) -> list[int]:
        """A list of powers of two."""
        value = self.listed(name, lengths)
        if not all(map(is_power, value)):
            raise self.fail(f"{name} has powers of two, not {value}", name)
        return value

    def parent(self) -> Scanner:
        """A scanner in front of the layout that this one is made from, in the same text."""
        value, start, end = self.values.get("parent", (None, 0, 0))
        if not isinstance(value, str) or not value.startswith("#"):
            raise self.fail("parent is missing" if value is None else "parent is a layout", "parent")
        return Scanner(self.scanner.text, _WHAT, self.scanner.source.name, start, end)


def _entries(scanner: Scanner, start: int, known: Sequence[str]) -> Entries:
    """Read entries up to the closing brace."""
    found: dict[str, tuple[int | list[int] | str, int, int]] = {}
    while not scanner.optional("}"):
        if found:
            scanner.expect(",", "or '}'")
        place = scanner.position
        name = scanner.name(", ".join(known))
        if name not in known or name in found:
            why = "is given twice" if name in found else f"is none of {', '.join(known)}"
            raise scanner.fail(f"{name} {why}", place, place + len(name))
        scanner.expect("=")
        first = scanner.position
        found[name] = (_value(scanner), first, len(scanner.text[: scanner.position].rstrip()))
    return Entries(scanner, start, found)


def _value(scanner: Scanner) -> int | list[int] | str:
    """An integer, a list, a word, or the text of a layout."""
    if scanner.sees("["):
        return scanner.listed("[", "]", "an integer")
    word = scanner.matched(_WORD)
    if word is not None:
        return word[0]
    if not scanner.sees("#"):
        return scanner.integer("an integer, a list or a layout")
    start, depth = scanner.position, 0
    while scanner.position < len(scanner.text):
        depth += {"<": 1, ">": -1}.get(scanner.text[scanner.position], 0)
        scanner.position += 1
        if depth == 0 and scanner.text[scanner.position - 1] == ">":
            break
    text = scanner.text[start : scanner.position]
    scanner.skip()
    return text


def _linear(scanner: Scanner, context: Context, start: int) -> LinearLayout:
    return take_linear(scanner)


def _blocked(scanner: Scanner, context: Context, start: int) -> LinearLayout:
    return take_blocked(scanner, context)


_MMA = ("versionMajor", "versionMinor", "warpsPerCTA", "CTAsPerCGA", "CTASplitNum", "CTAOrder", "instrShape")


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix instruction: its version, warps along both axes, and the shape of what one warp makes at once."""

    version: int
    warps: tuple[int, int]
    shape: tuple[int, int]

    @property
    def warp_order(self) -> tuple[int, int]:
        """The axis that warps run along first."""
        return (0, 1) if self.version == 3 else (1, 0)


def _matrix(scanner: Scanner, start: int) -> Matrix:
    entries = _entries(scanner, start, _MMA)
    version = entries.number("versionMajor")
    if version not in (2, 3):
        raise entries.fail(f"versionMajor is 2 (mma.sync) or 3 (wgmma), not {version}", "versionMajor")
    warps, shape = entries.powers("warpsPerCTA", (2,)), entries.listed("instrShape", (2, 3))
    if any(n != 1 for name in _MMA[3:5] if name in entries.values for n in entries.listed(name, (2,))):
        raise entries.fail("clusters of more than one block are not supported", "CTAsPerCGA")
    if shape[0] != 16 or shape[1] < 8 or not is_power(shape[1]) or (version == 2 and shape[1] != 8):
        expected = "[16, 8]" if version == 2 else "[16, N, K], N a power of two from 8 on"
        raise entries.fail(f"instrShape is {expected}, not {shape}", "instrShape")
    return Matrix(version, (warps[0], warps[1]), (shape[0], shape[1]))


def _mma(scanner: Scanner, context: Context, start: int) -> LinearLayout:
    matrix = _matrix(scanner, start)
    extents = tensor_extents(scanner, context, 2, "the layout of a matrix instruction")
    steps: list[Step] = [("register", 1, 2), ("lane", 1, 4), ("lane", 0, 8), ("register", 0, 2)]
    steps.append(("register", 1, matrix.shape[1] // 8))
    steps += [("warp", axis, matrix.warps[axis]) for axis in matrix.warp_order]
    return layout_of_steps(steps, extents, (1, 0))


def _dot_operand(scanner: Scanner, context: Context, start: int) -> LinearLayout:
    """A factor of a matrix instruction: K is along the last axis of the first, the first axis of the second."""
    entries = _entries(scanner, start, ("opIdx", "parent", "kWidth"))
    index, width = entries.number("opIdx"), entries.power("kWidth")
    if index not in (0, 1):
        raise entries.fail(f"opIdx is 0 or 1, not {index}", "opIdx")
    inner = entries.parent()
    first = inner.position
    inner.matched(_PREFIX)
    kind = inner.name("nvidia_mma")
    if kind not in ("mma", "nvidia_mma"):
        raise inner.fail(f"the parent of a dot_op is a nvidia_mma layout here, not {kind}", first, inner.position)
    inner.expect("<")
    inner.expect("{")
    matrix = _matrix(inner, first)
    inner.expect(">")
    if matrix.version == 3 and index == 1:
        raise entries.fail("the second factor of wgmma lies in shared memory: opIdx is 0", "opIdx")
    along, across = (1, 0) if index == 0 else (0, 1)
    extents = tensor_extents(scanner, context, 2, "a factor of a matrix instruction")
    steps: list[Step] = [("register", along, width), ("lane", along, 4), ("lane", across, 8)]
    steps += [("register", across, 2)] if index == 0 else []
    steps.append(("register", along, 2))
    steps += [("warp", axis if axis == across else -1, matrix.warps[axis]) for axis in matrix.warp_order]
    return layout_of_steps(steps, extents, (along, across))


def layout_of_steps(steps: Sequence[Step], shape: Sequence[int], order: Sequence[int]) -> LinearLayout:
    """Bits that go on along axes, step by step; then registers along `order` for what the shape has more. What it has
    less is held again, by registers too: an instruction has as many as it has.
    """
    rank, reached = len(shape), [1] * len(shape)
    found: dict[str, list[Basis]] = {name: [] for name in HARDWARE}
    for name, axis, factor in steps:
        for _ in range(factor.bit_length() - 1):
            inside = axis >= 0 and reached[axis] < shape[axis]
            found[name].append(unit_basis(rank, axis, reached[axis] if inside else 0))
            if axis >= 0:
                reached[axis] *= 2
    for axis in order:
        while reached[axis] < shape[axis]:
            found["register"].append(unit_basis(rank, axis, reached[axis]))
            reached[axis] *= 2
    return LinearLayout(tuple((name, tuple(found[name])) for name in HARDWARE), tuple(shape))


def _slice(scanner: Scanner, context: Context, start: int) -> LinearLayout:
    """The parent on a tensor with one more axis, of extent 1, which is left out of the index."""
    entries = _entries(scanner, start, ("dim", "parent"))
    axis = entries.number("dim")
    shape = context.needed(scanner.source, "a slice does not say the shape of its tensor")
    if not 0 <= axis <= len(shape):
        raise entries.fail(f"dim is from 0 to {len(shape)}, the rank of the tensor", "dim")
    inner = entries.parent()
    parent = _take(inner, Context((*shape[:axis], const(1), *shape[axis:])))
    found = []
    for name, bases in parent.inputs:
        kept = [tuple(v for k, v in enumerate(basis) if k != axis) for basis in bases]
        found.append((name, tuple(basis for basis in kept if name != "register" or any(basis))))
    return LinearLayout(tuple(found), tuple(v for k, v in enumerate(parent.extents) if k != axis))


_SHARED = ("vec", "perPhase", "maxPhase", "order", *_MMA[3:6], "hasLeadingOffset")


def _shared(scanner: Scanner, context: Context, start: int) -> LinearLayout:
    """From an offset in shared memory to the index: vectors of a row are XORed with the row's phase."""
    entries = _entries(scanner, start, _SHARED)
    vec, per, most = (entries.power(name) for name in _SHARED[:3])
    if entries.values.get("hasLeadingOffset", ("false",))[0] != "false":
        raise entries.fail("hasLeadingOffset is false here", "hasLeadingOffset")
    if any(n != 1 for name in _MMA[3:5] if name in entries.values for n in entries.listed(name, range(1, 6))):
        raise entries.fail("clusters of more than one block are not supported", "CTAsPerCGA")
    order = entries.listed("order", range(1, 6))
    if sorted(order) != list(range(len(order))):
        raise entries.fail(f"order is a permutation of 0 to {len(order) - 1}", "order")
    extents = tensor_extents(scanner, context, len(order), "a layout of shared memory")
    bases: list[Basis] = []
    for position, axis in enumerate(order):
        for bit in range(extents[axis].bit_length() - 1):
            basis = [0] * len(order)
            basis[axis] = 1 << bit
            if position == 1:
                basis[order[0]] = vec * ((1 << bit) // per % most) % extents[order[0]]
            bases.append(tuple(basis))
    return LinearLayout((("offset", tuple(bases)), ("block", ())), tuple(extents))


_KINDS: Mapping[str, Callable[[Scanner, Context, int], LinearLayout]] = {
    "linear": _linear,
    "blocked": _blocked,
    "nvidia_mma": _mma,
    "mma": _mma,
    "dot_op": _dot_operand,
    "slice": _slice,
    "swizzled_shared": _shared,
    "shared": _shared,
}
