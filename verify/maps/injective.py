"""Whether an index map is injective on a shape, and onto a box. Part of the trusted computing base.

The most common maps need no engine: each output is a digit of one input that is moved by a number, and all digits of
the inputs are there, in a mixed radix: `[(c + 1)//32, h, (c + 1)//4 % 8, (c + 1)%4]`, on a concrete shape. Every
integer is the sum of its digits times their weights, so such a map is injective.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import INT32
from layoutproof.ir.expr import TRUE, Binary, Expr, IntImm, Var
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.operators import BinaryOp
from layoutproof.verify.algebra.polynomials import Poly, constant, constant_of, multiply, scale
from layoutproof.verify.maps.box import Size, physical_box
from layoutproof.verify.maps.component import decide
from layoutproof.verify.maps.decision import Collision, Decision
from layoutproof.verify.maps.examples import instance_at
from layoutproof.verify.maps.problem import (
    Part,
    Problem,
    Reading,
    Shape,
    coerce_shape,
    components,
    make_problem,
    read_problem,
    with_forms,
)
from layoutproof.verify.maps.symbolic_shapes import condition_is_satisfiable, with_signs
from layoutproof.verify.program.evidence import UNRECORDED, Gathered, OneToOne
from layoutproof.verify.program.questions import Because
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict

RLIMIT = 2_000_000
Digit = tuple[str, int, int, int]  # of `(name + offset) // weight % modulus`; a modulus of 0 for none


def prove_injective(
    index_map: IndexMap,
    shape: Shape,
    where: Expr | None = None,
    gathered: Gathered = UNRECORDED,
    negative: Collection[str] = (),
) -> Verdict:
    """Whether no two logical indices share a cell. Names are at least 0, but for those that may be `negative`.

    Raises LayoutproofError for a map that goes below zero or traps.
    """
    start = perf_counter()
    reading = read_problem(index_map, shape, where)
    if read_splits(reading) is not None:
        claim = injective_claim(reading.domain_text())
        verdict = Verdict(Status.PROVED, claim, "symbolic", seconds=perf_counter() - start)
    else:
        problem = with_forms(reading)
        parts = make_parts(problem, physical_box(problem, "digits", None))
        nothing = vacuous(problem, start)
        verdict = nothing if nothing is not None else joined(problem, [decide(part) for part in parts], start)
    if verdict.status is Status.PROVED and negative and not _holds_with_signs(index_map, shape, where, negative):
        reason = f"not proved where {' or '.join(sorted(negative))} is negative"
        return Verdict(Status.UNKNOWN, verdict.claim, verdict.engine, reason=reason, seconds=perf_counter() - start)
    if verdict.status is not Status.PROVED or not gathered.is_recording:
        return verdict
    problem = make_problem(index_map, shape, where)
    given = problem.index_map
    # The evidence on the way is about parts of the map; the whole claim is one question.
    return replace(
        verdict, evidence=(OneToOne(given.inputs, problem.shape, given.outputs, problem.where, verdict.engine),)
    )


def _holds_with_signs(index_map: IndexMap, shape: Shape, where: Expr | None, negative: Collection[str]) -> bool:
    """Whether a map that is one-to-one where all names are at least 0 is proved to be so where some are negative."""
    (signed,), extents, condition = with_signs([index_map], coerce_shape(shape), where, negative)
    try:
        return prove_injective(signed, extents, condition).status is Status.PROVED
    except LayoutproofError:
        return False  # it goes below 0, or traps, at sizes that may not occur


def is_onto(index_map: IndexMap, shape: Shape, box: Shape) -> bool:
    """Whether a map certainly reaches each cell of a box, once: it is injective, and there are as many indices as
    cells. Raises as `prove_injective` does, and for a box that does not hold the image.
    """
    problem = make_problem(index_map, shape)
    parts = make_parts(problem, physical_box(problem, "digits", box))
    indices = [size for part in parts if (size := part.domain_size()) is not None]
    cells = [size for part in parts if (size := part.box_size()) is not None]
    known = len(indices) == len(cells) == len(parts)
    return known and product(indices) == product(cells) and all(decide(part).status is Status.PROVED for part in parts)


def is_into(index_map: IndexMap, shape: Shape, box: Shape, where: Expr | None) -> bool:
    """Whether a map certainly has a cell of its own in a box for each index. Raises as `is_onto` does."""
    problem = make_problem(index_map, shape, where)
    return all(
        decide(part).status is Status.PROVED for part in make_parts(problem, physical_box(problem, "digits", box))
    )


def product(factors: Sequence[Poly]) -> Poly:
    """The product of forms."""
    number, others = 1, constant(1)
    for factor in factors:
        value = constant_of(factor)
        if value is None:
            others = multiply(others, factor)
        else:
            number *= value
    return scale(others, number)


def make_parts(problem: Problem, sizes: Sequence[Size]) -> list[Part]:
    """The components of a problem, each with its part of the box."""
    cells: dict[int, Poly] = {}
    for axis, size in enumerate(sizes):
        if isinstance(size, str):
            cells[axis] = problem.ring.name(f"p{axis}", 0, None)
        else:
            cells[axis] = {} if constant_of(size) == 1 else problem.ring.below(f"p{axis}", size)
    box = {axis: size for axis, size in enumerate(sizes) if not isinstance(size, str)}
    return [Part(problem, c.axes, c.inputs, box, cells) for c in components(problem)]


def vacuous(problem: Problem, start: float) -> Verdict | None:
    """The verdict where no values of the symbols leave anything to ask."""
    if not (problem.symbols or problem.where != TRUE) or condition_is_satisfiable(problem, RLIMIT) is not False:
        return None
    claim = injective_claim(problem.domain_text())
    reason = "no values of the symbols satisfy the side condition with every extent at least 1"
    because = frozenset((Because.CONTRADICTION,))
    return Verdict(Status.VACUOUS, claim, "z3", reason=reason, seconds=perf_counter() - start, because=because)


def joined(problem: Problem, decisions: Sequence[Decision], start: float) -> Verdict:
    """The verdict on a map from those on its components: it is injective where all are."""
    claim, seconds = injective_claim(problem.domain_text()), perf_counter() - start
    refuted = next((a for a in decisions if a.status is Status.REFUTED and a.collision is not None), None)
    if refuted is not None and refuted.collision is not None:
        example = replayed(problem, refuted.collision)
        if example is not None:
            return Verdict(Status.REFUTED, claim, refuted.engine, counterexample=example, seconds=seconds)
        reason = "a counterexample was found but does not replay"
        return Verdict(Status.UNKNOWN, claim, refuted.engine, reason=reason, seconds=seconds)
    unknown = next((a for a in decisions if a.status is not Status.PROVED), None)
    if unknown is not None:
        why, because = unknown.reason, unknown.because
        return Verdict(unknown.status, claim, unknown.engine, reason=why, because=because, seconds=seconds)
    return Verdict(Status.PROVED, claim, _engine(decisions), reason=problem.assumptions(), seconds=seconds)


_ENGINES = ("symbolic", "mixed-radix", "GF(2)", "isl", "z3", "enumeration")


def _engine(decisions: Sequence[Decision]) -> str:
    """The engine that did the hardest part."""
    used = {a.engine for a in decisions}
    return next((e for e in reversed(_ENGINES) if e in used), "symbolic")


def replayed(problem: Problem, collision: Collision) -> dict[str, Any] | None:
    """The collision as JSON has it, once the reference evaluator has shown both indices to have one image."""
    count = len(problem.extents)
    symbols = collision.symbols
    a, b = ([index.get(k, 0) for k in range(count)] for index in (collision.first, collision.second))
    instance = instance_at(problem, symbols)
    if (
        a == b
        or instance is None
        or not all(0 <= i < e for index in (a, b) for i, e in zip(index, instance.extents, strict=True))
    ):
        return None
    image = problem.index_map.evaluate(a, symbols)
    if problem.index_map.evaluate(b, symbols) != image:
        return None
    example: dict[str, Any] = {"first": a, "second": b, "image": list(image)}
    return {**example, "symbols": dict(symbols)} if symbols else example


def injective_claim(domain: str) -> Claim:
    """That a map is injective on a domain."""
    what = f"no two logical indices of {domain} share a physical cell"
    return Claim(ClaimKind.CELLS, what, about=("injective", domain))


# Maps that split their inputs into digits


@dataclass(slots=True)
class Split:
    """One input with its digits: the weight, the modulus and the axis of each."""

    extent: int
    offset: int = 0
    digits: list[tuple[int, int, int]] = field(default_factory=list)

    def is_whole(self) -> bool:
        """Whether these are all digits of one radix, each once."""
        expected = 1
        for weight, modulus, _ in sorted(self.digits):
            if weight != expected:
                return False
            expected = weight * modulus  # 0, which is no weight, after the highest
        return expected == 0


def read_splits(reading: Reading) -> tuple[list[Split], list[int]] | None:
    """The splits of the inputs, in their order, and the extents of the box of digits; None for any other map."""
    if reading.symbols or reading.where is not TRUE:
        return None
    splits: list[Split] = []
    by_name: dict[str, Split] = {}
    for v, extent in zip(reading.index_map.inputs, reading.extents, strict=True):
        if not isinstance(extent, int) or v.dtype != INT32:
            return None
        by_name[v.name] = Split(extent)
        splits.append(by_name[v.name])
    sizes: list[int] = []
    for axis, output in enumerate(reading.index_map.outputs):
        digit = _read_digit(output)
        if digit is None or digit[1] < 0:
            return None
        name, offset, weight, modulus = digit
        split = by_name[name]
        if split.digits and split.offset != offset:
            return None
        split.offset = offset
        split.digits.append((weight, modulus, axis))
        sizes.append(modulus if modulus else (split.extent - 1 + offset) // weight + 1)
    if all(split.is_whole() if split.digits else split.extent == 1 for split in splits):
        return splits, sizes
    return None


def _read_digit(expr: Expr) -> Digit | None:
    """The digit that an expression is written as; None for other forms."""
    weight, modulus = 1, 0
    if isinstance(expr, Binary) and expr.op is BinaryOp.FLOORMOD:
        expr, modulus = _divided(expr)
        if modulus < 1:
            return None
    if isinstance(expr, Binary) and expr.op is BinaryOp.FLOORDIV:
        expr, weight = _divided(expr)
        if weight < 1:
            return None
    if isinstance(expr, Var):
        return expr.name, 0, weight, modulus
    if isinstance(expr, Binary) and expr.op is BinaryOp.ADD:
        if isinstance(expr.lhs, Var) and isinstance(expr.rhs, IntImm):
            return expr.lhs.name, expr.rhs.value, weight, modulus
    return None


def _divided(expr: Binary) -> tuple[Expr, int]:
    """The dividend, and the divisor if it is a number; else 0."""
    return expr.lhs, expr.rhs.value if isinstance(expr.rhs, IntImm) else 0
