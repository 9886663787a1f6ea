"""What callers see: parameters, whether they overlap, and padding. Wrong rewrites are rejected."""

from __future__ import annotations

from random import Random

import pytest
from tests.shares import one_in, some
from tests.verify.kernel.test_holes import AB, COPY, FIRST, OWN, function, rejected

from layoutproof.verify.certificate.finder.kernel_evidence import try_kernel
from layoutproof.verify.kernel.rejected import Rejected

PARALLEL = COPY.replace("range", "T.parallel")
AND = "for i in range(8):\n    A[i] = T.float32(1)"
SWAPPED = "# theta: 0 -> 1: lambda i: [i]\n# theta: 1 -> 0: lambda i: [i]\n"
ONE, TWO = AND.replace("A[", "B["), AND


@pytest.mark.parametrize(
    ("old", "new", "head", "kinds"),
    [
        (COPY, COPY, "", set()),
        (
            COPY,
            COPY.replace("i in range(8)", "i, j in T.grid(2, 4)").replace("[i]", "[4 * i + j]"),
            "split",
            set(),
        ),
        (COPY, COPY.replace("[i]", "[7 - i]"), "# theta: 0 -> 0: lambda i: [7 - i]\n", {"same-end"}),
        (COPY, PARALLEL, "", {"no-race"}),
        (f"{ONE}\n{TWO}", f"{TWO}\n{ONE}", SWAPPED, {"same-end"}),
        (COPY, f"{COPY}\nfor i in range(8):\n    B[i] = B[i]", FIRST, {"same-value"}),
        (COPY, f"{OWN}{COPY}\nfor i in range(8):\n    U[i] = A[i]", FIRST, {"same-value"}),
    ],
)
def test_parameters_that_may_overlap_keep_their_order(old: str, new: str, head: str, kinds: set[str]) -> None:
    """All accesses of them do, whatever their indices."""
    head = "# theta: 0 -> 0: lambda i, j: [4 * i + j]\n" if head == "split" else head
    text = f"# functions: f, f\n{head}" + function("before", AB, old) + function("after", AB, new)
    claims = try_kernel(text.replace('"tirx.noalias": True, ', ""))[0]
    assert {claim.kind for claim in claims if not claim.is_accepted} == kinds
    assert not {claim.kind for claim in try_kernel(text)[0] if not claim.is_accepted}


HANDLES = 'A = T.match_buffer(a, (8,), "float32")\nB = T.match_buffer(b, (8,), "float32")\n'


def test_handles_are_of_the_arrays_that_they_match() -> None:
    """In the order of the parameters, each of one array, and of no other."""
    plain, other = "a: T.handle, b: T.handle", "b: T.handle, a: T.handle"
    assert rejected(plain, HANDLES + COPY, HANDLES + COPY) == set()
    assert rejected(AB, COPY, HANDLES + COPY, other=(plain, "")) == set()
    assert rejected(plain, HANDLES + COPY, HANDLES + COPY, other=(other, "")) == {"interface"}
    for wrong in (HANDLES.replace("(b", "(a"), HANDLES.replace("(b", "(c"), HANDLES.split("\n")[0] + "\n"):
        with pytest.raises(Rejected):
            rejected(plain, HANDLES + COPY, wrong + COPY.replace("B[", "A["))


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        ("", '"layoutproof.apart": True', set()),
        ("", "", set()),
        ("", '"tirx.noalias": True', {"interface"}),
        ("", '"layoutproof.apart": False', {"interface"}),
        ("", '"layoutproof.apart": True, "noalias": True', {"interface"}),
        ('"layoutproof.apart": True', "", {"interface"}),
    ],
)
def test_that_parameters_do_not_overlap_is_stated(before: str, after: str, kinds: set[str]) -> None:
    """By a step, as its own condition on calls; nothing else may come in with it."""
    programs = (
        function(name, AB, COPY).replace('"tirx.noalias": True, ', given)
        for name, given in (("before", before), ("after", after))
    )
    text = "# functions: f, f\n" + "".join(programs)
    assert {claim.kind for claim in try_kernel(text)[0] if not claim.is_accepted} == kinds


@pytest.mark.parametrize(
    ("logical", "cell", "wrong"), [("14", "3, 3", False), ("14", "1, 3", True), ("4", "1, 3", True)]
)
def test_a_record_does_not_make_padding(logical: str, cell: str, wrong: bool) -> None:
    """Padding is what lies outside the old buffer, whatever extents the record names."""
    layout = '"layoutproof.layout": {"B_data": {"logical_shape": [%s], "steps": [%s]}}'
    step = '{"index_map": "lambda i: [i // 4, i % 4]", "shape": [4, 4], "contract": "undef"}'
    parameters = 'A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")'
    after = 'A: T.Buffer((14,), "float32"), B: T.Buffer((4, 4), "float32")', layout % (logical, step)
    head = f"{FIRST}# cells: B_data -> B_data: lambda i: [i // 4, i % 4]\n# interface: B\n"
    new = f"for i in range(14):\n    B[i // 4, i % 4] = A[i]\nB[{cell}] = T.float32(7)"
    assert bool(rejected(parameters, "for i in range(14):\n    B[i] = A[i]", new, head, after)) is wrong


@pytest.mark.parametrize(("contract", "wrong"), [("None", True), ('"T.float32(0)"', True), ('"T.float32(5)"', False)])
def test_padding_is_assumed_to_be_what_its_contract_says(contract: str, wrong: bool) -> None:
    """A caller keeps the contract, not the assumption."""
    layout = '"layoutproof.layout": {"A_data": {"logical_shape": [14], "steps": [%s]}}'
    step = f'{{"index_map": "lambda i: [i // 4, i % 4]", "shape": [4, 4], "contract": {contract}}}'
    parameters = 'A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")'
    after = 'A: T.Buffer((4, 4), "float32"), B: T.Buffer((14,), "float32")', layout % step
    head = f"{FIRST}# cells: A_data -> A_data: lambda i: [i // 4, i % 4]\n# interface: A\n"
    new = "for k, l in T.grid(4, 4):\n    T.evaluate(T.assume(k < 3 or l < 2 or A[k, l] == T.float32(5)))\n"
    new += "for i in range(14):\n    B[i] = A[i // 4, i % 4]"
    assert bool(rejected(parameters, "for i in range(14):\n    B[i] = A[i]", new, head, after)) is wrong


@pytest.mark.parametrize(
    ("contract", "loops", "wrong"),
    [("lambda p, q: p", "p, q", False), ("lambda q, p: q", "p, q", False), ("lambda p, q: p", "q, p", True)],
)
def test_a_contract_speaks_of_the_indices_of_its_cell(contract: str, loops: str, wrong: bool) -> None:
    """Not of loops that have the names of these."""
    step = f'{{"index_map": "lambda i: [i // 4, i % 4]", "shape": [4, 4], "contract": "{contract}"}}'
    layout = f'"layoutproof.layout": {{"A_data": {{"logical_shape": [14], "steps": [{step}]}}}}'
    parameters = 'A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")'
    after = 'A: T.Buffer((4, 4), "int32"), B: T.Buffer((14,), "int32")', layout
    head = f"{FIRST}# cells: A_data -> A_data: lambda i: [i // 4, i % 4]\n# interface: A\n"
    row, column = loops.split(", ")
    new = f"for {loops} in T.grid(4, 4):\n"
    new += f"    T.evaluate(T.assume({row} < 3 or {column} < 2 or A[{loops}] == p))\n"
    new += "for i in range(14):\n    B[i] = A[i // 4, i % 4]"
    assert bool(rejected(parameters, "for i in range(14):\n    B[i] = A[i]", new, head, after)) is wrong


FILLED = "for k, l in T.grid(4, 4):\n    B[k, l] = T.if_then_else(k == 3 and 2 <= l, T.float32(0), A[k * 4 + l])"


def test_callers_promise_nothing_more() -> None:
    """Of the alignment of an array; a temporary may have any. Targets are attributes like others."""
    assert rejected(AB, COPY, COPY, other=(AB.replace('"float32")', '"float32", align=64)', 1), "")) == {"interface"}
    assert rejected(AB, OWN + COPY, OWN.replace('"float32")', '"float32", align=64)') + COPY) == set()
    shape = AB.partition("T.Buffer(")[2].partition("), ")[0] + ")"
    view = f'V = T.decl_buffer({shape}, "float32", data=A.data, align=64)\n'
    assert rejected(AB, COPY, view + COPY.replace("A[", "V[")) == {"interface"}
    assert rejected(AB, view + COPY.replace("A[", "V["), view + COPY) == set()
    for target, kinds in (
        ("T.target('llvm')", set()),
        ("[\"T.target('c')\"]", {"interface"}),
        ("T.target('c')", {"interface"}),
    ):
        text = function("before", AB, COPY, '"target": T.target("llvm")') + function(
            "after", AB, COPY, f'"target": {target}'
        )
        assert {claim.kind for claim in try_kernel(text)[0] if not claim.is_accepted} == kinds


@pytest.mark.parametrize(("contract", "kinds"), [("None", {"same-value"}), ('"undef"', set())])
def test_padding_without_a_contract_is_not_loaded(contract: str, kinds: set[str]) -> None:
    """Not by a choice that evaluates both of its sides either."""
    layout = '"layoutproof.layout": {"A_data": {"logical_shape": [14], "steps": [%s]}}'
    step = f'{{"index_map": "lambda i: [i // 4, i % 4]", "shape": [4, 4], "contract": {contract}}}'
    parameters = 'A: T.Buffer((14,), "float32"), B: T.Buffer((16,), "float32")'
    after = 'A: T.Buffer((4, 4), "float32"), B: T.Buffer((16,), "float32")', layout % step
    old = "for i in range(16):\n    B[i] = T.if_then_else(i < 14, A[i], T.float32(0))"
    new = old.replace("A[i]", "A[i // 4, i % 4]").replace("if_then_else", "Select")
    head = "# theta: 0 -> 0: lambda i: [i]\n# interface: A\n# cells: A_data -> A_data: lambda i: [i // 4, i % 4]\n"
    assert rejected(parameters, old, new.replace("Select", "if_then_else"), head, after) == set()
    assert rejected(parameters, old, new, head, after) == kinds


@one_in(4)
@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        ("k == 3", "k == 3", set()),
        ("2 <= l", "2 < l", {"interface", "within-buffer"}),
        ("k == 3 and 2 <= l", "k == 3", {"same-value"}),
        ("T.float32(0)", "T.float32(1)", {"interface"}),
        ("T.float32(0)", "T.float32(-0.0)", {"interface"}),
        ("A[k * 4 + l])", "A[k * 4 + l])\nB[3, 3] = T.float32(1)", {"interface"}),
        ("A[k * 4 + l])", "A[k * 4 + l])\nB[3, 2] = T.float32(0)", set()),
        ("    B", "    if A[0] > T.float32(0):\n        B", {"interface", "same-end"}),
        ("    B", "    if l < 3:\n        B", {"interface", "same-end"}),
        ("T.grid(4, 4)", "T.grid(4, 3)", {"interface", "same-end"}),
    ],
)
def test_padding_is_filled_by_a_choice(old: str, new: str, kinds: set[str]) -> None:
    """All of it, with what the contract says, and with nothing else after that."""
    layout = '"layoutproof.layout": {"B_data": {"logical_shape": [14], "steps": [%s]}}'
    step = '{"index_map": "lambda i: [i // 4, i % 4]", "shape": [4, 4], "contract": "T.float32(0)"}'
    parameters = 'A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")'
    after = 'A: T.Buffer((14,), "float32"), B: T.Buffer((4, 4), "float32")', layout % step
    head = "# theta: 0 -> 0: lambda k, l: [4 * k + l] where 4 * k + l < 14\n# interface: B\n"
    head += "# cells: B_data -> B_data: lambda i: [i // 4, i % 4]\n"
    assert old in FILLED
    body = "for i in range(14):\n    B[i] = A[i]"
    assert rejected(parameters, body, FILLED.replace(old, new), head, after) == kinds


VALUES = ("A[i]", "B[i]", "A[i] + B[i]", "A[5 - i]", "A[0]", "B[i // 2]", "1")
OVERLAPPING = 'A: T.Buffer((6,), "int32"), B: T.Buffer((6,), "int32")'
Stored = tuple[str, str, str]  # a buffer, an index, a value


def executed(loops: list[list[Stored]], distance: int, reverse: bool) -> list[int]:
    """One memory after these loops, B being so many elements after A."""
    memory = list(range(100, 140))
    at = {"A": memory[10:], "B": memory[10 + distance :]}
    for stores in loops:
        for i in reversed(range(6)) if reverse else range(6):
            for name, index, value in stores:
                for buffer, start in (("A", 10), ("B", 10 + distance)):
                    at[buffer] = memory[start:]
                found = eval(value, {}, {**at, "i": i})
                memory[{"A": 10, "B": 10 + distance}[name] + eval(index, {}, {"i": i})] = found
    return memory


@pytest.mark.parametrize("seed", some(range(40), 1))
def test_what_is_accepted_holds_for_every_overlap(seed: int) -> None:
    """Loops that change places, are split or run backwards: in Python, over one list, for every distance."""
    rng, accepted = Random(seed), 0
    for _ in range(30):
        loops = [[(rng.choice("AB"), rng.choice(("i", "5 - i", "i // 2")), rng.choice(VALUES))] for _ in range(2)]
        order, is_fused, reverse = rng.sample(range(2), 2), rng.random() < 0.4, rng.random() < 0.3
        moved = [[store for k in order for store in loops[k]]] if is_fused else [loops[k] for k in order]
        e = "5 - i" if reverse else "i"
        head = "".join(f"# theta: {m} -> {k}: lambda i: [{e}]\n" for m, k in enumerate(order))
        old, new = (
            "\n".join(
                "\n    ".join(["for i in range(6):", *(f"{b}[{x}] = {v}".replace("i", form) for b, x, v in stores)])
                for stores in program
            )
            for program, form in ((loops, "i"), (moved, f"({e})"))
        )
        text = f"# functions: f, f\n{head}" + function("before", OVERLAPPING, old) + function("after", OVERLAPPING, new)
        if all(claim.is_accepted for claim in try_kernel(text.replace('"tirx.noalias": True, ', ""))[0]):
            accepted += 1
            for distance in range(-7, 8):
                assert executed(loops, distance, False) == executed(moved, distance, reverse), text
    assert accepted > 0
