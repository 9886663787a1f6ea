"""Every access lies inside its buffer, every view inside its memory, every block variable inside its domain.

A violation that data may or may not bring about is `unknown`, never `refuted`; a refutation is evaluated again, loops, guards and
index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, IntImm
from layoutproof.ir.semantics import Trap
from layoutproof.ir.text import Style, expr_text
from layoutproof.verify.claim import Claim, ClaimKind
from layoutproof.verify.evidence import Digits
from layoutproof.verify.facts import Facts, Stopwatch, left_open, proved, refuted, unknown, values_text, visible
from layoutproof.verify.instances import Access, Scene
from layoutproof.verify.integers import at_least, below
from layoutproof.verify.radix import factors_of, split_digits, stride_radices
from layoutproof.verify.search import Search
from layoutproof.verify.verdict import Verdict

STRUCTURE = "structure"


def prove_in_bounds(facts: Facts) -> tuple[Verdict, ...]:
    """One verdict an access, in the order of the text: every index is at least 0 and below the extent, in every instance."""
    seen: dict[tuple[object, ...], None] = {}
    verdicts = []
    for access in facts.program.accesses:
        key = (access.buffer, access.indices, access.scene.dims, access.scene.guards, access.node.span)
        if key not in seen:
            seen[key] = None
            verdicts.append(prove_access_in_bounds(facts, access))
    return tuple(verdicts)


def prove_access_in_bounds(facts: Facts, access: Access) -> Verdict:
    """That one access stays inside its buffer."""
    watch = facts.watch()
    shape = ", ".join(expr_text(e, Style.PLAIN) for e in access.buffer.shape)
    claim = Claim(ClaimKind.WITHIN_BUFFER, f"{access.kind.value} {access.text} stays within [{shape}]", access.place)
    engine = STRUCTURE
    undecided: Verdict | None = None
    for axis, (index, extent) in enumerate(zip(access.indices, access.buffer.shape, strict=True)):
        found = find_outside(facts, access.scene, index, extent)
        if found.is_empty:
            engine = _stronger(engine, found.engine)
            continue
        verdict = _violation(facts, access, axis, found, claim, watch)
        if verdict.counterexample is not None:
            return verdict
        undecided = undecided if undecided is not None else verdict
    return undecided if undecided is not None else proved(claim, engine, watch)


_ORDER = (STRUCTURE, "intervals", "isl", "mixed-radix", "z3")


def _stronger(a: str, b: str) -> str:
    """Of two engines, the one that says more about how hard it was."""
    return max(a, b, key=_ORDER.index)


def find_outside(facts: Facts, scene: Scene, index: Expr, extent: Expr) -> Search:
    """An instance in which `index` is not in `[0, extent)`."""
    if isinstance(extent, IntImm):
        interval = facts.interval(index, scene)
        if interval.low >= 0 and interval.high < extent.value:
            return facts.by_intervals(scene, index, 0, extent.value - 1)
        found = facts.model.outside(scene, index, 0, extent.value - 1)
    else:
        low, high = facts.model.search(scene, below(index, 0)), facts.model.search(scene, at_least(index, extent))
        found = high if low.is_empty else low
    if found.is_empty or (found.point is not None and found.exact):
        return found
    for radices in (factors_of(extent), stride_radices((index,), extent, frozenset(facts.program.symbols))):
        digits = digits_in_range(facts, scene, index, radices) if len(radices) > 1 else None
        if digits is not None:
            facts.gathered.record(Digits(index, tuple(digits), tuple(radices), extent))
            return Search(None, engine="mixed-radix")
    return facts.decide(found, scene, below(index, 0), at_least(index, extent))


def digits_in_range(facts: Facts, scene: Scene, index: Expr, radices: Sequence[Expr]) -> list[Expr] | None:
    """The mixed-radix digits of `index`, when each is proved to be in the range of its radix, by intervals or integer sets; else None."""
    if not radices:
        return None
    digits = split_digits(index, radices) if len(radices) > 1 else [index]
    return digits if all(_in_range(facts, scene, d, r) for d, r in zip(digits, radices, strict=True)) else None


def _in_range(facts: Facts, scene: Scene, digit: Expr, radix: Expr) -> bool:
    if isinstance(radix, IntImm):
        interval = facts.interval(digit, scene)
        if interval.low >= 0 and interval.high < radix.value:
            return facts.by_intervals(scene, digit, 0, radix.value - 1).is_empty
        return facts.model.outside(scene, digit, 0, radix.value - 1).is_empty
    return facts.model.search(scene, below(digit, 0)).is_empty and facts.model.search(scene, at_least(digit, radix)).is_empty


def _violation(facts: Facts, access: Access, axis: int, found: Search, claim: Claim, watch: Stopwatch) -> Verdict:
    index = expr_text(access.indices[axis], Style.PLAIN)
    if found.point is None:
        return left_open(claim, found, watch, f"index {axis}, {index}: ")
    point = found.point
    values = visible(access.scene, point, facts.program)
    where = f" at {values_text(values)}" if values else ""
    numbers = replayed_index(facts, access, point)
    if numbers is None or not found.exact:
        return left_open(claim, found, watch, f"index {axis}, {index}: ")
    if access.data_dependent:
        return unknown(claim, found.engine, f"index {axis}, {index}, may be {numbers[0][axis]}{where}, depending on data", watch)
    seen = {"buffer": access.buffer.name, "place": str(access.place), "indices": numbers[0], "extents": numbers[1], "values": values}
    return refuted(claim, found.engine, seen, f"{access.buffer.name}{numbers[0]} of {numbers[1]}{where}", watch)


def replayed_index(facts: Facts, access: Access, point: Mapping[str, int]) -> tuple[list[int], list[int]] | None:
    """Indices and extents at a point where the access happens and is out of bounds; None when either is not so."""
    if not facts.happens(access.scene, point):
        return None
    try:
        indices = [int(evaluate(index, point)) for index in access.indices]
        extents = [int(evaluate(extent, point)) for extent in access.buffer.shape]
    except (Trap, KeyError, TypeError):
        return None
    outside = any(not 0 <= i < e for i, e in zip(indices, extents, strict=True))
    return (indices, extents) if outside else None
