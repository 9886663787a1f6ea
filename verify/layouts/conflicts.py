"""Bank conflicts and vector width: how often a memory with banks has to be asked for an access pattern that is given as
a map.

A pattern goes from (iteration..., lane) to a logical index, the layout from that to an offset in elements. Lanes are
served in phases: those whose vectors fill the banks once. In a phase each bank delivers one word at a time; lanes that
want one word share it. The count is exact: over bits by ranks, otherwise by enumeration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import error
from layoutproof.ir.index_map import IndexMap
from layoutproof.verify.maps.bits import read_linear

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
else:
    from layoutproof.ir.late import np

MAX_ACCESSES = 1 << 22


@dataclass(frozen=True, slots=True)
class Memory:
    """`banks` of `width` bytes each; an element has `element` bytes, a lane accesses `vector` elements at once.

    `phase` lanes are served together; without it, those whose vectors fill the banks once.
    """

    banks: int = 32
    width: int = 4
    element: int = 4
    vector: int = 1
    phase: int | None = None

    def __post_init__(self) -> None:
        for name in ("banks", "width", "element", "vector", "phase"):
            value = getattr(self, name)
            if value is None:
                continue
            if value < 1 or value & (value - 1):
                raise error(codes.NOTATION_INCOMPLETE, f"a memory has a power of two as its {name}, not {value}")
        if self.element * self.vector > self.banks * self.width:
            size = self.element * self.vector
            message = f"a lane accesses {size} bytes at once, all banks deliver {self.banks * self.width}"
            raise error(codes.NOTATION_INCOMPLETE, message)

    @property
    def lanes(self) -> int:
        """The lanes of a phase."""
        if self.phase is not None:
            return self.phase
        return max(1, self.banks * self.width // max(self.width, self.element * self.vector))


@dataclass(frozen=True, slots=True)
class Conflicts:
    """A phase takes as many rounds as its most wanted bank has words; `rounds` are those of all phases. `worst` is the
    most rounds of one phase, `at` the first index of such a phase, `bank` its most wanted bank. `vector` is the widest
    vector of elements, a power of two, at whose multiples all accesses begin.
    """

    memory: Memory
    phases: int
    rounds: int
    worst: int
    at: tuple[int, ...]
    bank: int
    vector: int
    engine: str

    @property
    def conflicts(self) -> int:
        """The rounds beyond one a phase."""
        return self.rounds - self.phases

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        memory = self.memory
        return {
            "memory": {
                "banks": memory.banks,
                "width": memory.width,
                "element": memory.element,
                "vector": memory.vector,
            },
            "phases": self.phases,
            "lanes_of_a_phase": memory.lanes,
            "rounds": self.rounds,
            "conflicts": self.conflicts,
            "worst": {"rounds": self.worst, "at": list(self.at), "bank": self.bank},
            "widest_vector": self.vector,
            "engine": self.engine,
        }


def count_conflicts(offset: IndexMap, shape: Sequence[int], memory: Memory) -> Conflicts:
    """The conflicts of accesses: `offset` goes from (iteration..., lane) to the offset of the first element of each.

    Raises LayoutproofError for more accesses than are counted, and where one goes below 0.
    """
    if offset.rank != 1 or not shape:
        raise error(codes.RANK, "an access pattern goes from at least one index, the lane, to one offset")
    found = _by_bits(offset, shape, memory)
    return found if found is not None else _by_points(offset, shape, memory)


def offsets_of(offset: IndexMap, shape: Sequence[int]) -> Ints:
    """All offsets, one row for each iteration, one column for each lane. Raises LayoutproofError."""
    if prod(shape) > MAX_ACCESSES:
        raise error(codes.TOO_MANY_CELLS, f"{prod(shape)} accesses are too many to count: at most {MAX_ACCESSES}")
    values = np.broadcast_to(offset.output_values(shape)[0], tuple(shape))
    if values.min(initial=0) < 0:
        where = np.unravel_index(int(values.argmin()), values.shape)
        message = f"the access {tuple(map(int, where))} has the offset {int(values.min())}, which is below 0"
        raise error(codes.BELOW_ZERO, message)
    rows: Ints = values.reshape(-1, shape[-1])
    return rows


def _by_points(offset: IndexMap, shape: Sequence[int], memory: Memory) -> Conflicts:
    rows = offsets_of(offset, shape)
    phases = phases_of(rows, memory)
    counts = words_of_banks(phases, memory)
    rounds = counts.max(axis=1)
    worst = int(rounds.argmax())
    return Conflicts(
        memory,
        len(rounds),
        int(rounds.sum()),
        int(rounds[worst]),
        _index_of(worst, shape, memory),
        int(counts[worst].argmax()),
        widest_vector(rows),
        "enumeration",
    )


def phases_of(rows: Ints, memory: Memory) -> Ints:
    """Offsets with one phase a row; the lanes that are missing in the last one repeat its first."""
    lanes = min(memory.lanes, rows.shape[1])
    missing = -rows.shape[1] % lanes
    if missing:
        last = rows[:, rows.shape[1] - rows.shape[1] % lanes]
        rows = np.concatenate([rows, np.repeat(last[:, None], missing, axis=1)], axis=1)
    return rows.reshape(-1, lanes)


def words_of_banks(phases: Ints, memory: Memory) -> Ints:
    """For each phase and bank, how many different words of it are wanted."""
    first = phases * memory.element
    last = first + (memory.element * memory.vector - 1)
    reach = int((last // memory.width - first // memory.width).max()) + 1
    words = np.minimum(first[:, :, None] // memory.width + np.arange(reach), (last // memory.width)[:, :, None])
    flat = np.sort(words.reshape(len(phases), -1), axis=1)
    new = np.ones(flat.shape, dtype=np.bool_)
    new[:, 1:] = flat[:, 1:] != flat[:, :-1]
    where = np.arange(len(phases))[:, None] * memory.banks + flat % memory.banks
    counted: Ints = np.bincount(where[new], minlength=len(phases) * memory.banks).reshape(-1, memory.banks)
    return counted


def widest_vector(rows: Ints) -> int:
    """The largest power of two that divides all offsets; 1 where all are 0."""
    common = int(np.gcd.reduce(rows, axis=None))
    return common & -common if common else 1


def _index_of(phase: int, shape: Sequence[int], memory: Memory) -> tuple[int, ...]:
    """The index of the first lane of a phase."""
    lanes = min(memory.lanes, shape[-1])
    of_a_row = -(-shape[-1] // lanes)
    row, part = divmod(phase, of_a_row)
    outer = np.unravel_index(row, tuple(shape[:-1])) if len(shape) > 1 else ()
    return (*(int(k) for k in outer), part * lanes)


def _by_bits(offset: IndexMap, shape: Sequence[int], memory: Memory) -> Conflicts | None:
    """The count by ranks over F2, where the offset is linear over bits: every phase is like the first one.

    The words that a phase wants are a space of so many dimensions, its banks the image of that space: each bank that is
    wanted has as many words as the kernel has elements.
    """
    size = memory.element * memory.vector
    names = [v.name for v in offset.inputs]
    linear = read_linear(offset.outputs, names, shape)
    if linear is None:
        return None
    lane = shape[-1].bit_length() - 1
    phase_bits = min(lane, memory.lanes.bit_length() - 1)
    first_lane = linear.input_bits - lane
    inputs = range(first_lane, first_lane + phase_bits)
    columns = linear.columns[0]
    one = 1 << linear.input_bits
    vector = _vector_by_bits(columns)
    if vector < memory.vector:
        return None  # accesses that are not aligned touch another number of words each
    shift = memory.element.bit_length() - 1
    per_lane = [sum(1 << (k + shift) for k, mask in enumerate(columns) if mask >> bit & 1) for bit in inputs]
    inner = [1 << bit for bit in range(size.bit_length() - 1)]
    word_bits = memory.width.bit_length() - 1
    words = [value >> word_bits for value in (*per_lane, *inner)]
    banks = [word & (memory.banks - 1) for word in words]
    degree = 1 << (rank_over_bits(words) - rank_over_bits(banks))
    phases = prod(shape) >> phase_bits
    start = sum(1 << (k + shift) for k, mask in enumerate(columns) if mask & one)
    bank = (start >> word_bits) & (memory.banks - 1)
    at = (0,) * len(shape)
    return Conflicts(memory, phases, phases * degree, degree, at, bank, vector, "GF(2)")


def _vector_by_bits(columns: Sequence[int]) -> int:
    """The power of two that divides every offset; 1 where all are 0."""
    low = next((k for k, mask in enumerate(columns) if mask), None)
    return 1 if low is None else 1 << low


def rank_over_bits(vectors: Sequence[int]) -> int:
    """The number of independent vectors over F2."""
    pivots: dict[int, int] = {}
    for vector in vectors:
        while vector:
            top = vector.bit_length()
            if top not in pivots:
                pivots[top] = vector
                break
            vector ^= pivots[top]
    return len(pivots)


@dataclass(frozen=True, slots=True)
class Coalescing:
    """How many transactions of `segment` bytes the lanes of each iteration take together, and the `ideal` number, if
    their accesses lay side by side.
    """

    segment: int
    groups: int
    transactions: int
    ideal: int
    worst: int

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "segment": self.segment,
            "groups": self.groups,
            "transactions": self.transactions,
            "ideal": self.ideal,
            "worst": self.worst,
            "efficiency": self.ideal / self.transactions,
        }


def count_transactions(offset: IndexMap, shape: Sequence[int], memory: Memory, segment: int = 32) -> Coalescing:
    """The segments of a global memory that all lanes of each iteration touch. Raises LayoutproofError."""
    if segment < 1:
        raise error(codes.NOTATION_INCOMPLETE, f"a segment has at least 1 byte, not {segment}")
    rows = offsets_of(offset, shape)
    first = rows * memory.element
    last = first + (memory.element * memory.vector - 1)
    reach = int((last // segment - first // segment).max()) + 1
    touched = np.minimum(first[:, :, None] // segment + np.arange(reach), (last // segment)[:, :, None])
    flat = np.sort(touched.reshape(len(rows), -1), axis=1)
    counts = 1 + np.count_nonzero(np.diff(flat, axis=1), axis=1)
    size = -(-shape[-1] * memory.element * memory.vector // segment)
    return Coalescing(segment, len(rows), int(counts.sum()), len(rows) * size, int(counts.max()))
