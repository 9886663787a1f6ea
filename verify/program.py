"""All obligations of one program, at any stage of lowering: condition 3 ("no fault") of the checker.

In bounds, block variables in their domains, every cell read is readable, no padding without a contract is written, index arithmetic
fits, nothing traps, no race. What is proved holds for every input and every extent that the assumptions allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layoutproof.ir.expr import TRUE, Not
from layoutproof.verify.bounds import prove_in_bounds
from layoutproof.verify.claim import Claim, ClaimKind
from layoutproof.verify.contents import Content, told
from layoutproof.verify.facts import Facts, Stopwatch, left_open, proved, refuted, unknown, values_text, visible
from layoutproof.verify.fits import prove_index_fits
from layoutproof.verify.instances import Binding, Obstacle, Program
from layoutproof.verify.races import prove_race_free
from layoutproof.verify.readable import prove_no_forbidden_write, prove_readable
from layoutproof.verify.search import Search
from layoutproof.verify.traps import prove_no_trap
from layoutproof.verify.verdict import Verdict
from layoutproof.verify.views import prove_views


def check_facts(
    facts: Facts, *, calls: bool = True, contents: Sequence[Content] = (), before: Program | None = None
) -> tuple[Verdict, ...]:
    """The obligations of a program that was read already.

    With `calls` false, what nobody looks into is for whoever compares the program with another one that does the same. `contents` is what
    is known of inputs; `before` is the program of which this one is to do the same.
    """
    return (*_prove_no_fault(facts, contents, before), *prove_race_free(facts), *(_obstacles(facts) if calls else ()))


def _prove_no_fault(facts: Facts, contents: Sequence[Content], before: Program | None) -> Iterator[Verdict]:
    more = told(facts, contents)
    yield from prove_in_bounds(more)
    yield from prove_views(facts)
    yield from prove_bindings(facts)
    yield from prove_readable(more)
    yield from prove_no_forbidden_write(more)
    yield from prove_index_fits(more)
    yield from prove_no_trap(facts, before)


def prove_bindings(facts: Facts) -> tuple[Verdict, ...]:
    """One verdict a block variable that is not plainly inside its domain: it is, wherever its block runs."""
    verdicts = []
    for binding in facts.program.bindings:
        watch = facts.watch()
        what = f"block variable {binding.iter_var.var.name} stays in its domain"
        claim = Claim(ClaimKind.WITHIN_DOMAIN, what, binding.spot.place_of(binding.node))
        if binding.domain != TRUE:
            found = facts.search(binding.scene, Not(binding.domain))
            verdicts.append(proved(claim, found.engine, watch) if found.is_empty else _outside(facts, binding, found, claim, watch))
    return tuple(verdicts)


def _outside(facts: Facts, binding: Binding, found: Search, claim: Claim, watch: Stopwatch) -> Verdict:
    point = found.point
    if point is None or not facts.happens(binding.scene, point) or facts.holds(binding.domain, point) is not False:
        return left_open(claim, found, watch)
    values = visible(binding.scene, point, facts.program)
    text = f"{binding.iter_var.var.name} leaves its domain at {values_text(values)}"
    if binding.scene.depends_on_data(binding.domain):
        return unknown(claim, found.engine, f"{text}, depending on data", watch)
    return refuted(claim, found.engine, {"variable": binding.iter_var.var.name, "values": values}, text, watch)


def _obstacles(facts: Facts) -> tuple[Verdict, ...]:
    """One verdict for each thing in the program that nobody looks into: what it does is not known to be without fault."""
    watch = facts.watch()
    return tuple(
        unknown(_no_fault(obstacle), "structure", f"{obstacle.what} is not looked into", watch) for obstacle in facts.program.obstacles
    )


def _no_fault(obstacle: Obstacle) -> Claim:
    return Claim(ClaimKind.OTHER, "no fault", obstacle.spot.place_of(obstacle.node))
