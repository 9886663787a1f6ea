"""Obligations of textures against an enumeration of all instances of random small programs: nothing wrong is proved, or
refuted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.shares import one_in, some
from tests.verify.programs import program, statuses
from tests.verify.textures.texel_programs import Events, Place, TexelProgram, Touch, events, random_texel_program

from layoutproof.verify.textures.texture_checks import PROFILES, check_texels
from layoutproof.verify.verdict.verdict import Status, Verdict

LIMITS = PROFILES["4096x4096"]
SIZES = tuple({"n": n, "m": m} for n in range(4) for m in range(4))
BATCH = 40


def told(made: TexelProgram) -> tuple[Verdict, ...]:
    """All verdicts of a program."""
    return check_texels(program(made.text), LIMITS)


def of_write(verdicts: tuple[Verdict, ...], line: int, part: str) -> Verdict:
    """The verdict about the store on a line."""
    return next(
        v
        for v in verdicts
        if v.claim.text.startswith("write") and part in v.claim.text and v.claim.text.endswith(f"(line {line})")
    )


def agree(made: TexelProgram, sizes: tuple[Mapping[str, int], ...]) -> None:
    """What is proved happens at none of the sizes, whatever data says; what is refuted is seen to happen; only data
    leaves a doubt.
    """
    verdicts = told(made)
    possible = [events(made, size, certain=False) for size in sizes]
    if not any(store.on_data for store in made.stores):
        assert Status.UNKNOWN not in statuses(verdicts), made.text
    for number in range(len(made.stores)):
        covers = of_write(verdicts, made.line(number), "covers")
        inside = of_write(verdicts, made.line(number), "stays within")
        if covers.status is Status.PROVED:
            assert not any(number in found.clobbered for found in possible), made.text
        if inside.status is Status.PROVED:
            assert not any((number, "write") in found.outside for found in possible), made.text
        if covers.status is Status.REFUTED:
            assert covers.counterexample is not None
            assert is_clobbered(made, number, covers.counterexample), (made.text, covers)
    for verdict in verdicts:
        if "is read by another" in verdict.claim.text:
            check_race(made, verdict, possible)


def check_race(made: TexelProgram, verdict: Verdict, possible: list[Events]) -> None:
    """The verdict about one loop agrees with what happens in it."""
    (loop,) = (name for name, _, _ in made.loops if verdict.claim.text.endswith(f"(line {made.loop_line(name)})"))
    if verdict.status is Status.PROVED:
        assert not any(loop in found.raced for found in possible), made.text
    if verdict.status is Status.REFUTED:
        assert verdict.counterexample is not None
        assert is_raced(made, verdict.counterexample), (made.text, verdict)


def concurrent(made: TexelProgram, first: Mapping[str, int], second: Mapping[str, int]) -> bool:
    """Whether two iterations run at once: the outermost loop in which they differ is parallel."""
    kinds = [kind for name, kind, _ in made.loops if first[name] != second[name]]
    return bool(kinds) and kinds[0] == "T.parallel"


def texels(made: TexelProgram, touch: Touch, values: Mapping[str, int]) -> list[Place]:
    """The texel of each scalar that an access touches."""
    return [(*outer, column // made.channels()) for *outer, column in touch.scalars(values)]


def happens(made: TexelProgram, number: int, values: Mapping[str, int]) -> bool:
    """Whether a store is executed in an iteration whatever data says."""
    guard = made.stores[number].guard
    return values in list(made.instances({s: values[s] for s in made.symbols})) and (
        guard is None or eval(guard, {}, dict(values))
    )


def instances_of(shown: Mapping[str, Any]) -> tuple[dict[str, int], dict[str, int], Place]:
    """The two iterations of a counterexample, and its texel."""
    return {**shown["symbols"], **shown["first"]}, {**shown["symbols"], **shown["second"]}, tuple(shown["texel"])


def is_clobbered(made: TexelProgram, number: int, shown: Mapping[str, Any]) -> bool:
    """Whether the counterexample is one: a part of the texel is written in the first iteration, and something of it in
    the second.
    """
    first, second, texel = instances_of(shown)
    written = texels(made, made.stores[number].write, first).count(texel)
    others = [
        k
        for k, store in enumerate(made.stores)
        if texel in texels(made, store.write, second) and happens(made, k, second)
    ]
    return (
        concurrent(made, first, second)
        and happens(made, number, first)
        and 0 < written < made.channels()
        and bool(others)
    )


def is_raced(made: TexelProgram, shown: Mapping[str, Any]) -> bool:
    """Whether the counterexample is one: the texel is written in the first iteration and read in the second."""
    first, second, texel = instances_of(shown)
    stores = list(enumerate(made.stores))
    writers = [k for k, store in stores if texel in texels(made, store.write, first) and happens(made, k, first)]
    readers = [
        k
        for k, s in stores
        if s.read is not None and texel in texels(made, s.read, second) and happens(made, k, second)
    ]
    return concurrent(made, first, second) and bool(writers) and bool(readers)


@one_in(7)
@pytest.mark.parametrize("batch", some(range(5), 2))
def test_fixed_shapes(batch: int) -> None:
    """Programs of fixed shapes, enumerated: every verdict agrees."""
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        agree(random_texel_program(seed), ({},))


@one_in(14)
@pytest.mark.parametrize("batch", some(range(4), 2))
def test_symbolic_shapes(batch: int) -> None:
    """Programs of any shape, enumerated at small sizes: what is proved of all sizes holds there."""
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        agree(random_texel_program(seed, symbolic=True), SIZES)


@one_in(4)
def test_the_programs_are_of_all_kinds() -> None:
    """Among the programs every verdict occurs for each obligation, so that the comparison says something."""
    found: set[tuple[str, Status]] = set()
    for seed in range(2 * BATCH):
        for verdict in told(random_texel_program(seed)):
            found |= {
                (part, verdict.status)
                for part in ("covers", "is read by another", "stays within")
                if part in verdict.claim.text
            }
    assert {status for part, status in found if part == "covers"} == {Status.PROVED, Status.REFUTED, Status.UNKNOWN}
    assert {
        (part, s) for part in ("is read by another", "stays within") for s in (Status.PROVED, Status.REFUTED)
    } <= found
