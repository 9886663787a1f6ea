"""What upstream's layout transform made of real operators, compared at their real sizes, and what it would not make,
made by a schedule.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.lowering.compare.pairs import UPSTREAM, Pair, case_name, check, named, told, upstream
from tests.shares import chosen, one_in

from layoutproof.ir.primfunc import LAYOUT
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import load, loads
from layoutproof.ir.stmt import Attributes
from layoutproof.lowering.compare.compare_programs import compare
from layoutproof.lowering.layout.pad_value import read_pad_value
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.certificate.recheck import recheck
from layoutproof.verify.verdict.verdict import Status

BY_NAME = {pair.name: pair for pair in upstream()}


# Every run proves each pair, turn about with its layout given and found.
WAYS = [(pair, given) for pair in upstream() for given in (True, False)]


@one_in(21)
@pytest.mark.parametrize(
    "way", chosen(WAYS, lambda number: number % 4 in (0, 3), lambda way: f"{case_name(way[0])}-{case_name(way[1])}")
)
def test_accepted_pairs_are_proved(way: tuple[Pair, bool]) -> None:
    """Every transform that upstream made is proved bit for bit, with its layout given or found, and the padding that
    upstream wrote.
    """
    pair, given = way
    found = check(pair, given)
    for layout in found.layouts:
        assert layout.layout_given is given
        after = next(b for b in pair.after.buffers if b.name == layout.stored_as)
        meant = read_pad_value(pair.pads.get(layout.buffer), after, (), ())
        assert layout.pad_value == (meant.text if meant is not None else None)


@one_in(21)
@pytest.mark.parametrize("name", ["00_row_sum", "14_exp1d", "19_softmax"])
def test_their_certificates_are_confirmed(name: str, tmp_path: Path) -> None:
    """What a comparison proved stands in a certificate that other solvers confirm."""
    path = tmp_path / "pair.lpcert.json"
    BY_NAME[name].compared().certificate.save(path)
    report = recheck([path], {"z3": "1", "cvc5": "2"}, seconds=20)
    assert report.status is Status.PROVED, report.files[0].problems


REFUSED = {
    "10_max_pool2d": ("pool_max", "lambda n, c, h, w: [n, c//4, h, w, c%4]"),
    "12_bias_add": ("T_add", "lambda n, c, h, w: [n, c//4, h, w, c%4]"),
    "21_sym_relu": ("compute", "lambda i: [i//4, i%4]"),
}


def transformed(name: str, pad: object) -> Pair:
    """What upstream would not transform, by a schedule, printed and read."""
    block, index_map = REFUSED[name]
    before = load(UPSTREAM / f"{name}.before.py")
    schedule = Schedule(before)
    schedule.transform_layout(block, block, index_map, pad)
    return Pair(
        name,
        before,
        loads(schedule.script()),
        {block: index_map},
        {block: "None" if pad is None else f"T.float32({pad})"},
        {},
    )


@one_in(10)
@pytest.mark.parametrize("pad", [None, 0.0, -1.0], ids=["none", "zero", "minus_one"])
@pytest.mark.parametrize("name", REFUSED)
def test_what_upstream_refused_is_proved(name: str, pad: float | None) -> None:
    """Padding without a value, and of any length: our own transform, printed and read, is proved from the record that
    it left.
    """
    pair = transformed(name, pad)
    found = compare(pair.before, pair.after)
    assert found.status is Status.PROVED and found.strictness == (), told(found)


@one_in(42)
@pytest.mark.parametrize("given", [True, False], ids=case_name)
@pytest.mark.parametrize("name", REFUSED)
def test_what_upstream_refused_is_proved_without_a_record(name: str, given: bool) -> None:
    """The same where the text says nothing of its layout, given and found."""
    pair = transformed(name, 0.0)
    attrs = Attributes({key: value for key, value in pair.after.attrs.items() if key != LAYOUT})
    bare = loads(print_func(replace(pair.after, attrs=attrs)))
    check(pair.with_after(bare), given)


def test_parameters_are_kept_where_shapes_are() -> None:
    """Parameters that look alike in both programs are not listed among the layouts: they are what callers rely on."""
    found = named(upstream(), "07_dense").compared()
    assert [layout.buffer for layout in found.layouts] == ["T_matmul_NT"]
