"""The loops of a copy as digits with their strides in source and destination, and the size of a tile.

Both sides of a copy want runs of some cache lines: a tile is made of the loops with the smallest steps in the
destination and of those with the smallest steps in the source, each until its runs are long enough. All is found from
the lowered program, which is what runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Binary, Compare, Expr, IfThenElseExpr, IntImm, Var
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, BufferStore, For, IfThenElse
from layoutproof.ir.visit import free_variables, loops_of_stores, stores_in, substitute, walk
from layoutproof.lowering.arith.affine import Polynomial, Steps, added, multiplied, number, polynomial, steps_of
from layoutproof.lowering.loops.nest import path_to

_AT_ZERO = (CompareOp.LT, CompareOp.GE)
_ABOVE_ZERO = (CompareOp.GT, CompareOp.LE)
WRITTEN = 1024
"""The bytes that a tile's runs in what is written should have: the lines at their ends are written in two parts."""
READ = 128
"""The bytes that its runs in what is read should have; twice as many where blocks of it are turned."""
STRAIGHT = 16 * 1024
"""The bytes of a run that is copied as it is."""
LARGEST = 16 * 1024
"""A tile is no larger than this, in bytes: the nearest cache has to hold it beside what is read."""
FEW = 4
"""Along a loop with no more tiles than this they are of one size, as far as they can be."""
BLOCK = 16
"""The rows of the largest block that is turned at once: tiles along a loop that has many are a multiple of it."""
UNKNOWN = 1 << 30
"""What the extent of a loop over a symbol counts as."""


@dataclass(frozen=True, slots=True)
class Digit:
    """One loop: its name, its extent, and its steps in elements. `read` is None where the source has no steps;
    `guarded`: a condition depends on the loop.
    """

    name: str
    extent: Expr
    written: Polynomial
    read: Polynomial | None
    guarded: bool

    @property
    def size(self) -> int | None:
        """The number of iterations where it is a constant."""
        return self.extent.value if isinstance(self.extent, IntImm) else None

    @property
    def write_step(self) -> int | None:
        """The step in what is written where it is a constant."""
        return number(self.written)

    @property
    def read_step(self) -> int | None:
        """The step in what is read where it is a constant."""
        return number(self.read) if self.read is not None else None

    def follows(self, inner: Digit) -> bool:
        """Whether this loop continues where the inner one ends, in both streams."""
        if self.guarded or inner.guarded or self.read is None or inner.read is None:
            return False
        extent = polynomial(inner.extent)
        return multiplied(inner.written, extent) == self.written and multiplied(inner.read, extent) == self.read


def digits_of(lowered: PrimFunc, store: int) -> tuple[Digit, ...] | None:
    """The loops around a store of a lowered program, outermost first; None if its index is no sum of their steps."""
    loops = loops_of_stores(lowered.body)[store]
    statement = list(stores_in(lowered.body))[store]
    variables = {loop.var for loop in loops}
    written = steps_of(statement.indices[-1], variables)
    if written is None:
        return None
    load, conditions = _value(statement)
    read = steps_of(load.indices[-1], variables) if load is not None else None
    conditions += [s.condition for s in path_to(lowered.body, statement) if isinstance(s, IfThenElse)]
    guards = {v for condition in conditions for v in free_variables(condition)}
    return tuple(_digit(loop, written, read, guards) for loop in loops)


def _digit(loop: For, written: Steps, read: Steps | None, guards: set[Var]) -> Digit:
    step = None if read is None else read.by_loop.get(loop.var, {})
    return Digit(loop.var.name, loop.extent, written.by_loop.get(loop.var, {}), step, loop.var in guards)


def _value(store: BufferStore) -> tuple[BufferLoad | None, list[Expr]]:
    """The load that a store copies, and its conditions."""
    value, conditions = store.value, list[Expr]()
    while isinstance(value, IfThenElseExpr):
        conditions.append(value.condition)
        value = value.then if isinstance(value.then, IfThenElseExpr | BufferLoad) else value.otherwise
    return (value if isinstance(value, BufferLoad) else None), conditions


def radices(block: Block) -> dict[Var, tuple[int, ...]]:
    """Where a block's indices cut its variables into digits: weights, smallest first, each a multiple of the last."""
    found: dict[Var, set[int]] = {}
    for node in walk(block.body):
        if (
            isinstance(node, Binary)
            and node.op in (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD)
            and isinstance(node.rhs, IntImm)
        ):
            known = _weight(node.lhs)
            if known is not None and node.rhs.value > 1:
                found.setdefault(known[0], set()).add(known[1] * node.rhs.value)
    return {variable: _chain(weights) for variable, weights in found.items()}


def _weight(expr: Expr) -> tuple[Var, int] | None:
    """`(v, k)` of `v // k`."""
    if isinstance(expr, Var):
        return expr, 1
    if isinstance(expr, Binary) and expr.op is BinaryOp.FLOORDIV and isinstance(expr.rhs, IntImm):
        inner = _weight(expr.lhs)
        return (inner[0], inner[1] * expr.rhs.value) if inner is not None and expr.rhs.value > 0 else None
    return None


def _chain(weights: set[int]) -> tuple[int, ...]:
    chain: list[int] = []
    for weight in sorted(weights):
        if weight % (chain[-1] if chain else 1) == 0:
            chain.append(weight)
    return tuple(chain)


def cuts(block: Block, loops: Sequence[For]) -> Iterator[tuple[str, int]]:
    """Loops and positions in them where a condition of the block changes: the start or end of a padded edge."""
    values = {i.var: i.binding for i in block.iter_vars}
    ranges = {loop.var: loop for loop in loops}
    for node in walk(block):
        if isinstance(node, Compare):
            form = added(polynomial(substitute(node.lhs, values)), polynomial(substitute(node.rhs, values)), -1)
            yield from _cuts_of(node.op, form, ranges)


def _cuts_of(op: CompareOp, form: Polynomial, loops: Mapping[Var, For]) -> Iterator[tuple[str, int]]:
    """Where `form op 0` becomes certain, along the loop with the largest step."""
    steps: dict[Var, int] = {}
    for monomial, coefficient in form.items():
        term = monomial[0] if monomial else None
        if term is None:
            continue
        if (
            len(monomial) > 1
            or not isinstance(term, Var)
            or term not in loops
            or not isinstance(loops[term].extent, IntImm)
        ):
            return
        steps[term] = coefficient
    if not steps:
        return
    main = max(steps, key=lambda v: abs(steps[v]))
    sign = 1 if steps[main] > 0 else -1
    reach = [sign * c * (_size(loops[v]) - 1) for v, c in steps.items() if v is not main]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    base = sign * form.get((), 0)
    shifts = {0} if op in _AT_ZERO else {1} if op in _ABOVE_ZERO else {0, 1}
    if sign < 0:
        shifts = {1 - shift for shift in shifts}
    places = {-((base - shift + end) // (sign * steps[main])) for shift in shifts for end in (low, high)}
    yield from ((main.name, place) for place in sorted(places) if 0 < place < _size(loops[main]))


def _size(loop: For) -> int:
    return loop.extent.value if isinstance(loop.extent, IntImm) else 0


def choose_tile(digits: Sequence[Digit], width: int) -> dict[str, int]:
    """How many iterations of each loop a tile has; loops outside of it are left out.

    `width` is that of an element in bytes. Empty if no loop of the destination has step one.
    """
    tile: dict[str, int] = {}
    if lies_straight(digits, width):
        _grow(tile, _prefix(digits), STRAIGHT, width)
        return tile
    _grow(tile, _chain_of_tiles(digits, lambda d: d.write_step), WRITTEN, width)
    if not tile:
        return {}
    read = _chain_of_tiles(digits, lambda d: d.read_step)
    turned = not read or read[0].write_step != 1
    _grow(tile, read, 2 * READ if turned else READ, width)
    return tile if _bytes(tile, width) <= LARGEST else {}


def lies_straight(digits: Sequence[Digit], width: int) -> bool:
    """Whether both streams are contiguous along the same loops, for runs that are worth copying as they are."""
    tile: dict[str, int] = {}
    _grow(tile, _prefix(digits), STRAIGHT, width)
    return _bytes(tile, width) >= READ


def _bytes(tile: dict[str, int], width: int) -> int:
    total = width
    for count in tile.values():
        total *= count
    return total


def _chain_of_tiles(digits: Sequence[Digit], step: Callable[[Digit], int | None]) -> list[Digit]:
    """The loops along which one stream is contiguous, innermost first."""
    chain: list[Digit] = []
    size = 1
    while True:
        found = next((d for d in digits if d not in chain and d.size != 1 and step(d) == size), None)
        if found is None:
            return chain
        chain.append(found)
        if found.size is None:
            return chain
        size *= found.size


def _prefix(digits: Sequence[Digit]) -> list[Digit]:
    """The loops along which both streams are contiguous."""
    prefix: list[Digit] = []
    for written, read in zip(
        _chain_of_tiles(digits, lambda d: d.write_step), _chain_of_tiles(digits, lambda d: d.read_step), strict=False
    ):
        if written != read:
            break
        prefix.append(written)
    return prefix


def _grow(tile: dict[str, int], chain: Sequence[Digit], wanted: int, width: int) -> None:
    """Take loops of a chain into the tile until their runs have `wanted` bytes, or the tile is at its largest."""
    run = width
    for digit in chain:
        if run >= wanted:
            return
        size = digit.size if digit.size is not None else UNKNOWN
        before = tile.get(digit.name, 1)
        room = LARGEST // (_bytes(tile, width) // before)
        count = max(before, min(size, -(-wanted // run), room))
        if size <= FEW * count:
            # Few tiles along this loop are made alike, or one: a last one that is small would be as much work.
            count = max(before, min(-(-size // max(size // count, 1)), room))
        elif count > BLOCK:
            count = max(before, count - count % BLOCK)
        if count > 1:
            tile[digit.name] = count
        run *= count
        if count < size:
            return
