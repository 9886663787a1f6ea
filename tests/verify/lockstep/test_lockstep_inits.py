"""Inits of reductions: kept, at every visit, in the first iteration, before the reduction; and each place where that would be wrong."""

from __future__ import annotations

import pytest
from tests.verify.lockstep.rewrites import SPLIT, accepted, buffer, function, lockstep, record, refused

from layoutproof.ir.primfunc import PrimFunc

AB = f"{buffer('A', '6, 4', 'int32')}, {buffer('B', '6', 'int32')}"
NOT_APART = '"global_symbol": "main"'


def reduction(
    loops: str = "for i, k in T.grid(6, 4):",
    axes: str = 'vi, vk = T.axis.remap("SR", [i, k])',
    where: str = "",
    init: str = "B[vi] = 0",
    update: str = "B[vi] = B[vi] + A[vi, vk]",
    head: str = AB,
    attrs: str = '"tirx.noalias": True',
    around: str = "{}",
) -> PrimFunc:
    """A sum over a block with an init."""
    lines = [axes, *([f"T.where({where})"] if where else []), "with T.init():", f"    {init}", update]
    depth = sum(1 for line in loops.splitlines())
    indent = "    " * depth
    block = f'{indent}with T.block("sum"):\n' + "\n".join(f"{indent}    {line}" for line in lines)
    nest = "\n".join("    " * n + line.strip() for n, line in enumerate(loops.splitlines()))
    return function(head, around.format(f"{nest}\n{block}"), attrs)


HOISTED = "for i in range(6):\n    B[i] = 0\n    for k in range(4):\n        B[i] = B[i] + A[i, k]"
GUARDED = "for i in range(6):\n    for k in range(4):\n        if k == 0:\n            B[i] = 0\n        B[i] = B[i] + A[i, k]"
OUTSIDE = "for k in range(4):\n    for i in range(6):\n        B[i] = B[i] + A[i, k]"
ALL_FIRST = f"for i in range(6):\n    B[i] = 0\n{OUTSIDE}"
# Stores are numbered block by block, an init after its update.
PAIRS: dict[int, int | None] = {0: 1, 1: 0}


def test_an_init_before_its_reduction() -> None:
    """Nothing touches the sum between the reduction's start and its first update."""
    claims = accepted(lockstep(reduction(), function(AB, HOISTED), pairs=PAIRS))
    assert any("may run before the reduction" in claim for claim in claims)


def test_an_init_in_the_first_iteration() -> None:
    """The first update of every sum is the one with `k == 0`."""
    claims = accepted(lockstep(reduction(), function(AB, GUARDED), pairs=PAIRS))
    assert any("first iteration" in claim for claim in claims)
    refused(lockstep(reduction(), function(AB, GUARDED.replace("k == 0", "k == 1")), pairs=PAIRS), "not known to be the same condition")


def test_an_init_of_a_reduction_outside() -> None:
    """All sums start before the reduction, over the loops that make them."""
    old = reduction("for k in range(4):\nfor i in range(6):")
    accepted(lockstep(old, function(AB, ALL_FIRST), pairs=PAIRS))
    refused(lockstep(old, function(AB, ALL_FIRST.replace("range(6):\n    B[i] = 0", "range(5):\n    B[i] = 0")), pairs=PAIRS), "loops i")


@pytest.mark.parametrize("wrong", ["B[i] = 1", "B[(i + 1) % 6] = 0"])
def test_another_init_is_refused(wrong: str) -> None:
    """The init stores what it stored, where it stored it."""
    new = function(AB, HOISTED.replace("B[i] = 0", wrong))
    refused(lockstep(reduction(), new, pairs=PAIRS), "is not known to be")


def test_an_init_that_is_gone_or_runs_every_time_is_refused() -> None:
    """Without the init the sum goes on from what was there; with it at every visit only the last term is left."""
    update = "for i in range(6):\n    for k in range(4):\n        B[i] = B[i] + A[i, k]"
    refused(lockstep(reduction(), function(AB, update), pairs={0: 0}), "has no counterpart in the new program")
    always = update.replace("        B[i] = B", "        B[i] = 0\n        B[i] = B")
    refused(lockstep(reduction(), function(AB, always), pairs=PAIRS), "")


def test_the_first_iteration_must_be_there() -> None:
    """An empty reduction initialises all the same, which its first iteration does not."""
    head = 'A: T.Buffer((6, "n"), "int32"), B: T.Buffer((6,), "int32")'
    old = reduction("for i, k in T.grid(6, n):", head=head)
    accepted(lockstep(old, function(head, HOISTED.replace("range(4)", "range(n)")), pairs=PAIRS))
    refused(lockstep(old, function(head, GUARDED.replace("range(4)", "range(n)")), pairs=PAIRS), "may run no iteration")


def test_a_guard_that_skips_the_first_update() -> None:
    """The init then belongs to a later one; before the reduction it is right all the same."""
    old = reduction(where="k > i % 2")
    hoisted = HOISTED.replace("        B[i] = B", "        if k > i % 2:\n            B[i] = B")
    accepted(lockstep(old, function(AB, hoisted), pairs=PAIRS))
    guarded = GUARDED.replace("        B[i] = B", "        if k > i % 2:\n            B[i] = B")
    refused(lockstep(old, function(AB, guarded), pairs=PAIRS), "may skip a result's first update")


def test_a_branch_around_the_block() -> None:
    """One on the reduction or on data keeps the init from waiting for the first iteration."""
    old = function(
        AB,
        'for i, k in T.grid(6, 4):\n    if k != 0:\n        with T.block("sum"):\n            vi, vk = T.axis.remap("SR", [i, k])\n'
        "            with T.init():\n                B[vi] = 0\n            B[vi] = B[vi] + A[vi, vk]",
    )
    hoisted = "for i in range(6):\n    B[i] = 0\n    for k in range(4):\n        if k != 0:\n            B[i] = B[i] + A[i, k]"
    accepted(lockstep(old, function(AB, hoisted), pairs=PAIRS))
    inside = "if k == 0:\n                B[i] = 0\n            B[i] = B[i] + A[i, k]"
    guarded = f"for i in range(6):\n    for k in range(4):\n        if k != 0:\n            {inside}"
    refused(lockstep(old, function(AB, guarded), pairs=PAIRS), "a branch around it depends on")


def test_a_neighbour_that_meddles_keeps_the_init_in_its_place() -> None:
    """Before the reduction it would be overwritten, or read too early; in the first iteration it is right."""
    beside = (
        'for i, k in T.grid(6, 4):\n    B[i] = 7\n    if 0 < 1:\n        with T.block("sum"):\n'
        '            vi, vk = T.axis.remap("SR", [i, k])\n'
        "            with T.init():\n                B[vi] = 0\n            B[vi] = B[vi] + A[vi, vk]"
    )
    old = function(AB, beside)
    hoisted = "for i in range(6):\n    B[i] = 0\n    for k in range(4):\n        B[i] = 7\n        B[i] = B[i] + A[i, k]"
    refused(lockstep(old, function(AB, hoisted), pairs={0: 2, 1: 0, 2: 1}), "another statement of the reduction touches what it writes")
    guarded = GUARDED.replace("        if k", "        B[i] = 7\n        if k")
    accepted(lockstep(old, function(AB, guarded), pairs={0: 0, 1: 2, 2: 1}))


@pytest.mark.parametrize("index", ["vi // 2", "vi % 3", "0"])
def test_results_that_share_a_cell_keep_their_order(index: str) -> None:
    """Initialised all before the first update, one would wipe out another."""
    target = f"B[{index}]"
    old = reduction("for k in range(4):\nfor i in range(6):", init=f"{target} = 0", update=f"{target} = {target} + A[vi, vk]")
    cell = target.replace("vi", "i")
    new = f"for i in range(6):\n    {cell} = 0\nfor k in range(4):\n    for i in range(6):\n        {cell} = {cell} + A[i, k]"
    refused(lockstep(old, function(AB, new), pairs=PAIRS), "may share a cell")


def test_results_that_keep_apart_in_other_words() -> None:
    """A rotation has no two results in one cell, which the engines tell."""
    target = "B[(vi + 1) % 6]"
    old = reduction("for k in range(4):\nfor i in range(6):", init=f"{target} = 0", update=f"{target} = {target} + A[vi, vk]")
    cell = target.replace("vi", "i")
    new = f"for i in range(6):\n    {cell} = 0\nfor k in range(4):\n    for i in range(6):\n        {cell} = {cell} + A[i, k]"
    accepted(lockstep(old, function(AB, new), pairs=PAIRS))


def test_an_update_that_reads_another_result_keeps_the_order() -> None:
    """It would find it initialised too early."""
    old = reduction("for k in range(4):\nfor i in range(6):", update="B[vi] = B[vi] + B[(vi + 1) % 6]")
    new = ALL_FIRST.replace("A[i, k]", "B[(i + 1) % 6]")
    refused(lockstep(old, function(AB, new), pairs=PAIRS), "may share a cell")


def test_parameters_that_may_overlap_keep_the_init_in_its_place() -> None:
    """The sum of one parameter may lie in the other, unless the step asks that it does not."""
    old = reduction("for k in range(4):\nfor i in range(6):", attrs=NOT_APART)
    refused(lockstep(old, function(AB, ALL_FIRST, NOT_APART), pairs=PAIRS), "may overlap")
    accepted(lockstep(old, function(AB, ALL_FIRST, '"layoutproof.apart": True'), pairs=PAIRS))


@pytest.mark.parametrize(
    ("init", "reason"),
    [("B[vi] = B[vi] + 1", "it reads what it writes"), ("B[vi] = k", "changes in the course of the reduction"), ("B[vi] = i", "accepted")],
)
def test_what_an_init_may_use(init: str, reason: str) -> None:
    """Not its own cell, nor a loop that repeats; the loop that makes its result is there."""
    old = reduction("for k in range(4):\nfor i in range(6):", init=init)
    new = function(AB, ALL_FIRST.replace("B[i] = 0", init.replace("vi", "i").replace("= k", "= 0")))
    if reason == "accepted":
        accepted(lockstep(old, new, pairs=PAIRS))
    else:
        refused(lockstep(old, new, pairs=PAIRS), reason)


def test_a_loop_that_makes_no_result_of_its_own() -> None:
    """An init that uses a loop of which a result sees several values is not the same for all of them."""
    axes = "vi = T.axis.spatial(6, i // 2)\nvk = T.axis.reduce(4, k)".replace("\n", "\n            ")
    old = reduction("for k in range(4):\nfor i in range(12):", axes=axes, init="B[vi] = i")
    update = "for k in range(4):\n    for i in range(12):\n        B[i // 2] = B[i // 2] + A[i // 2, k]"
    new = f"for i in range(12):\n    B[i // 2] = i\n{update}"
    refused(lockstep(old, function(AB, new), pairs=PAIRS), "of which one result may see several values")


def test_an_init_at_every_visit_of_what_reduces_nothing() -> None:
    """A block without a reduction starts anew each time, whatever its guard says."""
    old = function(
        AB,
        'for i in range(6):\n    with T.block("b"):\n        vi = T.axis.spatial(6, i)\n        T.where(i < 4)\n'
        "        with T.init():\n            B[vi] = 0\n        B[vi] = B[vi] + A[vi, 0]",
    )
    new = "for i in range(6):\n    B[i] = 0\n    if i < 4:\n        B[i] = B[i] + A[i, 0]"
    accepted(lockstep(old, function(AB, new), pairs=PAIRS))
    inside = "for i in range(6):\n    if i < 4:\n        B[i] = 0\n        B[i] = B[i] + A[i, 0]"
    refused(lockstep(old, function(AB, inside), pairs=PAIRS), "the old program has a store")


def test_an_init_stays_inside_the_domain() -> None:
    """Split loops leave the domain, and the init runs only within it."""
    head = f"{buffer('A', '14, 4', 'int32')}, {buffer('B', '14', 'int32')}"
    axes = "vi = T.axis.spatial(14, io * 4 + ii)\n                vk = T.axis.reduce(4, k)"
    old = reduction("for k in range(4):\nfor io in range(4):\nfor ii in range(4):", axes=axes, where="io * 4 + ii < 14", head=head)
    summed = "B[io * 4 + ii] = B[io * 4 + ii] + A[io * 4 + ii, k]"
    update = f"for k in range(4):\n    for io, ii in T.grid(4, 4):\n        if io * 4 + ii < 14:\n            {summed}"
    init = "for io, ii in T.grid(4, 4):\n    if io * 4 + ii < {}:\n        B[io * 4 + ii] = 0\n"
    accepted(lockstep(old, function(head, init.format(14) + update), pairs=PAIRS))
    refused(lockstep(old, function(head, init.format(13) + update), pairs=PAIRS), "not known to be the same condition")


def test_a_block_that_keeps_its_init() -> None:
    """In another layout, it runs at the same moments and stores the same."""
    head = f"{buffer('A', '14, 4', 'int32')}, {buffer('B', '14', 'int32')}"
    after = f"{buffer('A', '14, 4', 'int32')}, {buffer('B', '4, 4', 'int32')}"
    attrs = f'"tirx.noalias": True, {record("B_data", "14", SPLIT, "4, 4", "None")}'
    loops = "for i, k in T.grid(14, 4):"
    old = reduction(loops, head=head)
    cell = "B[vi // 4, vi % 4]"
    new = reduction(loops, init=f"{cell} = 0", update=f"{cell} = {cell} + A[vi, vk]", head=after, attrs=attrs)
    accepted(lockstep(old, new, cells={"B": SPLIT}))
    wrong = reduction(loops, init=f"{cell} = 1", update=f"{cell} = {cell} + A[vi, vk]", head=after, attrs=attrs)
    refused(lockstep(old, wrong, cells={"B": SPLIT}), "is not known to be")


@pytest.mark.parametrize(
    "axes",
    [
        'vi, vk = T.axis.remap("SS", [i, k])',
        'vi, vk = T.axis.remap("RR", [i, k])',
        "vi = T.axis.spatial(6, i)\n        vk = T.axis.reduce(4, 3 - k)",
    ],
)
def test_kept_inits_of_other_reductions_are_refused(axes: str) -> None:
    """Another kind of axis or another binding is another reduction."""
    found = lockstep(reduction(), reduction(axes=axes))
    assert found.reason is not None


def test_a_guard_on_the_way_decides_where_an_empty_reduction_starts() -> None:
    """Where the loops of a reduction may be empty, what is equal only inside them is not equal for the init."""
    head = 'A: T.Buffer((6, "n"), "int32"), B: T.Buffer((6,), "int32")'
    loops = "for i, k in T.grid(6, n):"
    old = reduction(loops, head=head)
    other = reduction(loops, head=head, init="B[vi] = 0 * n")
    accepted(lockstep(old, other))
    wrong = reduction("for i, k in T.grid(6, n):", head=head, init="B[vi] = T.if_then_else(n > 0, 0, 1)")
    refused(lockstep(old, wrong), "is not known to be")
