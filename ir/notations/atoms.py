"""Operands of matrix instructions by the names that CUTLASS and others give them: `SM80_16x8x16_F32F16F16F32_TN.A` is
the map from lane and value to the row and column of A. Operands are M x K, N x K and M x N.

Source: the fragment layouts in NVIDIA's PTX manual, AMD's matrix instruction calculator, Intel's DPAS and AMX manuals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

from layoutproof.ir.expr import Expr, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.cute import CuteLayout, colex_digits
from layoutproof.ir.notations.notation import Context, Notation, Scanner, WrittenLayout, index_variables, scaled, summed

Digit = tuple[int, int, int]
"""So many values, each of which moves the row and the column by so much."""


@dataclass(frozen=True, slots=True)
class Operand:
    """Where each lane holds each value: digits of the lane and of the value, the fastest first."""

    rows: int
    columns: int
    lane: tuple[Digit, ...]
    value: tuple[Digit, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """The lanes and the values of each."""
        return prod(extent for extent, _, _ in self.lane), prod(extent for extent, _, _ in self.value)

    def index_map(self) -> IndexMap:
        """From lane and value to row and column."""
        lane, value = index_variables(("lane", "value"), self.shape)
        digits = [*_terms(lane, self.lane), *_terms(value, self.value)]
        row = summed([scaled(digit, step) for digit, step, _ in digits if step])
        column = summed([scaled(digit, step) for digit, _, step in digits if step])
        return IndexMap((lane, value), (row, column))

    def layout(self) -> CuteLayout:
        """From (lane, value) to the offset in the column-major operand, as CuTe has it."""
        parts = [tuple((e, row + column * self.rows) for e, row, column in d) for d in (self.lane, self.value)]
        shapes = tuple(tuple(extent for extent, _ in part) for part in parts)
        return CuteLayout(shapes, tuple(tuple(stride for _, stride in part) for part in parts))


def _terms(index: Expr, digits: tuple[Digit, ...]) -> list[tuple[Expr, int, int]]:
    split = colex_digits(index, [extent for extent, _, _ in digits])
    return [(digit, row, column) for digit, (e, row, column) in zip(split, digits, strict=True) if e > 1]


@dataclass(frozen=True, slots=True)
class Atom:
    """One name in its parts: `arch_MxNxK_types_suffix`, the types one after the other."""

    name: str
    arch: str
    m: int
    n: int
    k: int
    types: str
    suffix: str

    def operand(self, which: str) -> Operand:
        """A, B or C. Raises ValueError for an instruction that is not known."""
        family = _FAMILIES.get(self.arch)
        if family is None:
            raise ValueError(f"the architecture {self.arch} is none of {', '.join(_FAMILIES)}")
        return family(self, which)

    def rows(self, which: str) -> int:
        """M of A and C, N of B."""
        return self.n if which == "B" else self.m


_NAME = re.compile(
    r"(?P<arch>[A-Z][A-Za-z]*[0-9]*P?)_(?P<m>[0-9]{1,4})x(?P<n>[0-9]{1,4})x(?P<k>[0-9]{1,4})_(?P<types>[A-Z0-9]+)"
    r"(?:_(?P<suffix>[A-Z0-9_]+))?"
)


def atom_of(name: str) -> Atom:
    """The parts of a name. Raises ValueError for one of another form."""
    match = _NAME.fullmatch(name)
    if match is None or not all(int(match[part]) for part in "mnk"):
        raise ValueError(f"{name} has not the form ARCH_MxNxK_TYPES, such as SM80_16x8x16_F32F16F16F32_TN")
    m, n, k = (int(match[part]) for part in "mnk")
    return Atom(name, match["arch"], m, n, k, match["types"], match["suffix"] or "")


def _no_such(atom: Atom) -> ValueError:
    return ValueError(
        f"no instruction of {atom.arch} multiplies {atom.m}x{atom.n}x{atom.k} of {atom.types} {atom.suffix}"
    )


def _whole(rows: int, columns: int, lanes: int = 1) -> Operand:
    """Every lane holds, or reads from shared memory, all of the operand, column by column."""
    return Operand(rows, columns, ((lanes, 0, 0),), ((rows, 1, 0), (columns, 0, 1)))


def _quads(rows: int, columns: int, packed: int, row_blocks: int, warps: int = 1) -> Operand:
    """Four lanes of `packed` neighbours a row, eight rows; then more rows, then more columns."""
    blocks = columns // (4 * packed)
    lane = ((4, 0, packed), (8, 1, 0)) + (((warps, 8 * row_blocks, 0),) if warps > 1 else ())
    return Operand(rows, columns, lane, ((packed, 0, 1), (row_blocks, 8, 0), (blocks, 0, 4 * packed)))


_BITS = {"F64": 64, "C64": 64, "TF32": 32, "F16": 16, "BF16": 16, "S8": 8, "U8": 8, "S4": 4, "U4": 4, "U1": 1}
_ACCUMULATORS = re.compile(r"F16|F32|F64|C64|S32")


def _factors(atom: Atom) -> str:
    """The type of A, after that of the result."""
    rest = _ACCUMULATORS.sub("", atom.types, count=1)
    found = next((name for name in (*_BITS, "E4M3", "E5M2") if rest.startswith(name)), None)
    if _ACCUMULATORS.match(atom.types) is None or found is None:
        raise _no_such(atom)
    return found


def _warp(atom: Atom, which: str) -> Operand:
    """`mma.sync` of a warp: registers of 32 bits hold neighbours along K."""
    if atom.m not in (8, 16) or atom.n != 8:
        raise _no_such(atom)
    if which == "C":
        return _quads(atom.m, 8, 2, atom.m // 8)
    packed = max(1, 32 // _BITS.get(_factors(atom), 8))
    if atom.arch == "SM120":
        # Factors of 8 bits and less: as many as make two registers a row, with half of A if it is sparse.
        packed = atom.k // 8
    rows = atom.rows(which)
    if atom.arch == "SM120" and atom.suffix.endswith("SPARSE") and which == "B":
        packed //= 2
    if atom.k % (4 * packed):
        raise _no_such(atom)
    return _quads(rows, atom.k, packed, rows // 8)


def _quad_pair(atom: Atom, which: str) -> Operand:
    """Volta's eight lanes: `lane` counts them, they are the lanes 0 to 3 and 16 to 19 of a warp."""
    if (atom.m, atom.n, atom.k) != (8, 8, 4) or atom.suffix not in ("TN", "NT", "NN", "TT"):
        raise _no_such(atom)
    if which == "C":
        if atom.types.startswith("F16"):
            return Operand(8, 8, ((8, 1, 0),), ((8, 0, 1),))
        return Operand(8, 8, ((2, 1, 0), (2, 0, 2), (2, 4, 0)), ((2, 0, 1), (2, 2, 0), (2, 0, 4)))
    if atom.suffix[which == "B"] == ("T" if which == "A" else "N"):
        return Operand(8, 4, ((8, 1, 0),), ((4, 0, 1),))
    return Operand(8, 4, ((4, 0, 1), (2, 4, 0)), ((4, 1, 0),))


def _group(atom: Atom, which: str) -> Operand:
    """`wgmma` of four warps, whose factors lie in shared memory (A of `RS`: in registers), or Hopper's `mma.sync`."""
    if atom.suffix == "TN":
        return _warp(atom, which)
    if atom.m != 64 or atom.n % 8 or not 8 <= atom.n <= 256 or atom.suffix[:2] not in ("SS", "RS"):
        raise _no_such(atom)
    if which == "C":
        return _quads(64, atom.n, 2, 2, 4)
    if which == "A" and atom.suffix == "RS":
        return _quads(64, atom.k, max(1, 32 // _BITS.get(_factors(atom), 8)), 2, 4)
    return _whole(atom.rows(which), atom.k, 128)


def _one_thread(atom: Atom, which: str) -> Operand:
    """One thread, or core, issues it: all operands are whole."""
    return _whole(atom.rows(which), atom.n if which == "C" else atom.k)


def _dot(atom: Atom, which: str) -> Operand:
    if (atom.m, atom.n) != (1, 1):
        raise _no_such(atom)
    return (
        Operand(1, 1, ((1, 0, 0),), ((1, 0, 0),))
        if which == "C"
        else Operand(1, atom.k, ((1, 0, 0),), ((atom.k, 0, 1),))
    )


def _mfma(atom: Atom, which: str) -> Operand:
    """AMD's 64 lanes. One instruction may multiply several blocks, which are stacked here: rows of the second follow
    those of the first.
    """
    n = atom.n
    if atom.m != n or n not in (4, 16, 32):
        raise _no_such(atom)
    factors = 4 if re.match(r"F32F16", atom.types) else 1
    factors = max(atom.k * n // 64, factors)
    groups, blocks = atom.k // factors, factors * 64 // (n * atom.k)
    if groups * factors != atom.k or blocks * n * atom.k != factors * 64 or (blocks > 1 and groups > 1):
        raise _no_such(atom)
    if which != "C":
        others = (groups, 0, factors) if blocks == 1 else (blocks, n, 0)
        return Operand(n * blocks, atom.k, ((n, 1, 0), others), ((factors, 0, 1),))
    if n == 4:
        return Operand(4 * blocks, 4, ((4, 0, 1), (16, 4, 0)), ((4, 1, 0),))
    size, lanes = (1 if atom.types.startswith("F64") else 4), 64 // n
    values = ((size, 1, 0), (n // (size * lanes), size * lanes, 0), (blocks, n, 0))
    return Operand(n * blocks, n, ((n, 0, 1), (lanes, size, 0)), values)


_WMMA_BITS = {"F16": 16, "I4": 4}  # those of BF16 contain F16, of F8, BF8 and I8 are 8


def _wmma(atom: Atom, which: str) -> Operand:
    """AMD's 32 lanes. RDNA3 has every factor in both halves of a wave; RDNA4 has 64 bits a row in each by turns."""
    bits = next((size for name, size in _WMMA_BITS.items() if name in atom.types[3:]), 8)
    if (atom.m, atom.n) != (16, 16) or (atom.k != 16 and (atom.arch, bits, atom.k) != ("RDNA4", 4, 32)):
        raise _no_such(atom)
    if atom.arch == "RDNA3":
        if which == "C":
            return Operand(16, 16, ((16, 0, 1), (2, 1, 0)), ((8, 2, 0),))
        return Operand(16, atom.k, ((16, 1, 0), (2, 0, 0)), ((atom.k, 0, 1),))
    if which == "C":
        return Operand(16, 16, ((16, 0, 1), (2, 8, 0)), ((8, 1, 0),))
    turn = min(64 // bits, atom.k // 2)
    return Operand(16, atom.k, ((16, 1, 0), (2, 0, turn)), ((turn, 0, 1), (atom.k // (2 * turn), 0, 2 * turn)))


def _dpas(atom: Atom, which: str) -> Operand:
    """Intel's subgroup, one lane for each column of B and C; A is the same for all lanes."""
    if atom.n != {"XeHPC": 8, "XeHPG": 16}[atom.arch] or not 1 <= atom.m <= 8 or atom.k != 8:
        raise _no_such(atom)
    if which == "A":
        return _whole(atom.m, atom.k, atom.n)
    if which == "B":
        return Operand(atom.n, atom.k, ((atom.n, 1, 0),), ((atom.k, 0, 1),))
    return Operand(atom.m, atom.n, ((atom.n, 0, 1),), ((atom.m, 1, 0),))


_FAMILIES: Mapping[str, Callable[[Atom, str], Operand]] = {
    "SM61": _dot,
    "SM70": _quad_pair,
    "SM75": _warp,
    "SM80": _warp,
    "SM89": _warp,
    "SM90": _group,
    "SM100": _one_thread,
    "SM120": _warp,
    "CDNA": _mfma,
    "CDNA3": _mfma,
    "CDNA3P": _mfma,
    "RDNA3": _wmma,
    "RDNA4": _wmma,
    "AMX": _one_thread,
    "XeHPC": _dpas,
    "XeHPG": _dpas,
}

# Reading

_WHAT = "matrix instruction"
_WORD = re.compile(r"[A-Za-z0-9_]+")


def read_atom(text: str, context: Context, name: str = "<layout>") -> WrittenLayout:
    """The map of an operand, on (lanes, values). Raises LayoutproofError."""
    operand = parse_operand(text, name)
    shape = tuple(const(extent) for extent in operand.shape)
    return WrittenLayout(Notation.MMA, text, operand.index_map(), shape)


def parse_operand(text: str, name: str = "<layout>") -> Operand:
    """Read `NAME.A`, `NAME.B` or `NAME.C`. Raises LayoutproofError."""
    scanner = Scanner(text, _WHAT, name)
    start = scanner.position
    word = scanner.matched(_WORD)
    if word is None:
        raise scanner.fail(f"a name such as SM80_16x8x16_F32F16F16F32_TN is expected, not {scanner.next}")
    end = scanner.position
    scanner.expect(".", "and an operand, A, B or C,")
    place = scanner.position
    which = scanner.name("A, B or C")
    if which not in ("A", "B", "C"):
        raise scanner.fail(f"the operand is A, B or C, not {which}", place, scanner.position)
    scanner.end()
    try:
        return atom_of(word[0]).operand(which)
    except ValueError as problem:
        raise scanner.fail(str(problem), start, end) from problem
