"""Inits of reductions in lockstep: a block does what its text with the branch written out does, at the same moments."""

from __future__ import annotations

import pytest
from tests.verify.lockstep.rewrites import SPLIT, accepted, buffer, function, lockstep, record, refused

from layoutproof.ir.primfunc import PrimFunc

AB = f"{buffer('A', '6, 4', 'int32')}, {buffer('B', '6', 'int32')}"


def reduction(
    loops: str = "i, k in T.grid(6, 4)",
    axes: str = 'vi, vk = T.axis.remap("SR", [i, k])',
    where: str = "",
    init: str = "B[vi] = 0",
    update: str = "B[vi] = B[vi] + A[vi, vk]",
    head: str = AB,
    attrs: str = '"tirx.noalias": True',
) -> PrimFunc:
    """A sum over a block with an init."""
    lines = [*axes.splitlines(), *([f"T.where({where})"] if where else []), "with T.init():", f"    {init}", update]
    return function(
        head,
        f'for {loops}:\n    with T.block("sum"):\n'
        + "\n".join(f"        {line.strip()}" for line in lines[:-2])
        + (f"\n            {init}\n        {update}"),
        attrs,
    )


def written_out(
    first: str = "k == 0", where: str = "", init: str = "B[i] = 0", loops: str = "i, k in T.grid(6, 4)", head: str = AB
) -> PrimFunc:
    """The same sum, its init in a branch."""
    depth = "        " if where else "    "
    lines = [f"for {loops}:", *([f"    if {where}:"] if where else []), f"{depth}if {first}:", f"{depth}    {init}"]
    return function(head, "\n".join([*lines, f"{depth}B[i] = B[i] + A[i, k]"]))


@pytest.mark.parametrize("where", ["", "i < 5", "k > i % 2", "k < i"])
def test_an_init_is_a_branch(where: str) -> None:
    """The init stands under the guard, and under the start of the reduction; either way round."""
    other = where.replace("i", "vi").replace("k", "vk")
    accepted(lockstep(reduction(where=other), written_out(where=where)))
    accepted(lockstep(written_out(where=where), reduction(where=other)))


@pytest.mark.parametrize("loops", ["i, k in T.grid(6, n)", "k, i in T.grid(n, 6)"])
def test_an_init_of_a_reduction_of_any_length(loops: str) -> None:
    """The branch in the first iteration is right where there may be none, and in whatever order the loops are."""
    head = 'A: T.Buffer((6, "n"), "int32"), B: T.Buffer((6,), "int32")'
    accepted(lockstep(reduction(loops, head=head), written_out(loops=loops, head=head)))


@pytest.mark.parametrize(
    ("axis", "first"),
    [
        ("T.axis.reduce(4, (k + 2) % 4)", "k == 2"),
        ("T.axis.reduce(4, 3 - k)", "k == 3"),
        ("T.axis.reduce((1, 3), k)", "k == 1"),
        ("T.axis.reduce(4, 0)", "k < 4"),
    ],
)
def test_where_a_reduction_starts(axis: str, first: str) -> None:
    """A binding that is not the loop itself starts where its variable is at the start of its domain, only there."""
    loops = "i, k in T.grid(6, 4)"
    where = "vk >= 1 and k >= 1" if "(1, 3)" in axis else ""
    axes = f"vi = T.axis.spatial(6, i)\nvk = {axis}"
    update = "B[vi] = B[vi] + A[vi, k]"
    accepted(lockstep(reduction(loops, axes, where, update=update), written_out(first, where.replace("vk", "k"))))
    wrong = "k == 0" if first != "k == 0" else "k == 1"
    refused(lockstep(reduction(loops, axes, where, update=update), written_out(wrong, where.replace("vk", "k"))), "")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"first": "k == 1"}, ""),
        ({"first": "k <= 1"}, ""),
        ({"first": "k < 4"}, ""),
        ({"init": "B[i] = 1"}, "is not known to be"),
        ({"init": "B[(i + 1) % 6] = 0"}, ""),
        ({"where": "k > 0"}, ""),
        ({"where": "i < 5"}, ""),
    ],
)
def test_another_init_is_refused(change: dict[str, str], reason: str) -> None:
    """Another moment, value, cell or guard is another init."""
    refused(lockstep(reduction(), written_out(**change)), reason)


def test_an_init_that_is_gone_is_refused() -> None:
    """Without the init the sum goes on from what was there."""
    update = "for i in range(6):\n    for k in range(4):\n        B[i] = B[i] + A[i, k]"
    refused(lockstep(reduction(), function(AB, update), pairs={0: 1}), "")


def test_an_init_without_a_reduction() -> None:
    """It runs at every visit that the guard lets through, and at no other."""
    axes = "vi = T.axis.spatial(6, i)"
    old = reduction("i in range(6)", axes, "i < 4", update="B[vi] = B[vi] + A[vi, 0]")
    inside = "for i in range(6):\n    if i < 4:\n        B[i] = 0\n        B[i] = B[i] + A[i, 0]"
    accepted(lockstep(old, function(AB, inside)))
    outside = "for i in range(6):\n    B[i] = 0\n    if i < 4:\n        B[i] = B[i] + A[i, 0]"
    refused(lockstep(old, function(AB, outside)), "")


def test_a_block_in_another_layout() -> None:
    """It starts at the same moments and stores the same."""
    head = f"{buffer('A', '14, 4', 'int32')}, {buffer('B', '14', 'int32')}"
    after = f"{buffer('A', '14, 4', 'int32')}, {buffer('B', '4, 4', 'int32')}"
    attrs = f'"tirx.noalias": True, {record("B_data", "14", SPLIT, "4, 4", "None")}'
    loops, cell = "i, k in T.grid(14, 4)", "B[vi // 4, vi % 4]"
    old = reduction(loops, head=head)
    accepted(
        lockstep(
            old,
            reduction(loops, init=f"{cell} = 0", update=f"{cell} = {cell} + A[vi, vk]", head=after, attrs=attrs),
            cells={"B": SPLIT},
        )
    )
    wrong = reduction(loops, init=f"{cell} = 1", update=f"{cell} = {cell} + A[vi, vk]", head=after, attrs=attrs)
    refused(lockstep(old, wrong, cells={"B": SPLIT}), "is not known to be")


@pytest.mark.parametrize(
    "axes",
    [
        'vi, vk = T.axis.remap("SS", [i, k])',
        'vi, vk = T.axis.remap("RR", [i, k])',
        "vi = T.axis.spatial(6, i)\nvk = T.axis.reduce(4, 3 - k)",
    ],
)
def test_inits_of_other_reductions_are_refused(axes: str) -> None:
    """Another kind of axis or another binding starts elsewhere."""
    refused(lockstep(reduction(), reduction(axes=axes)), "")
