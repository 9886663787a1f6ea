"""Hand-written layout records: their contracts are checked before anything is compared."""

from __future__ import annotations

import pytest
from tests.lowering.programs import program

import layoutproof as lp
from layoutproof.lowering import codes

LINE = 'A: T.Buffer((14,), "float32")'


@pytest.mark.parametrize(
    ("contract", "code", "said"),
    [
        ('"T.int32(0)"', codes.PAD_TYPE, "the pad value has type int32, B holds float32"),
        ('"lambda i: T.float32(0)"', codes.PAD_TYPE, "takes 1 index, B has 2 physical axes"),
        ('"A[0]"', codes.PAD_LOADS, "the pad value loads A"),
    ],
)
def test_a_record_states_of_padding_what_a_pad_value_can_be(contract: str, code: str, said: str) -> None:
    """A contract of another type, of other indices, or that is said otherwise is named, in either program."""
    step = f'{{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": {contract}}}'
    record = f'"layoutproof.layout": {{"B_data": {{"logical_shape": [14], "steps": [{step}]}}}}'
    old = program(f"def main({LINE}, B: {LINE[3:]}):\n    for i in range(14):\n        B[i] = A[i]\n")
    header = f'def main({LINE}, B: T.Buffer((4, 4), "float32")):\n    T.func_attr({{{record}}})\n'
    new = program(f"{header}    for i in range(14):\n        B[i // 4, i % 4] = A[i]\n")
    for before in (old, new):
        with pytest.raises(lp.LayoutproofError) as problem:
            lp.compare(before, new)
        (diagnostic,) = problem.value.diagnostics
        assert diagnostic.code == code
        assert "the layout record of B states" in diagnostic.message and said in diagnostic.message


@pytest.mark.parametrize(
    ("contract", "said"),
    [('"T.undef()"', "says as 'undef'"), ('"None"', "says as None, without quotes"), ('"1 +"', "B_data")],
)
def test_a_contract_that_is_none_is_refused_where_it_is_read(contract: str, said: str) -> None:
    """What no record says of padding is an error at the function's attributes."""
    step = f'{{"index_map": "lambda i: [i//4, i%4]", "shape": [4, 4], "contract": {contract}}}'
    record = f'"layoutproof.layout": {{"B_data": {{"logical_shape": [14], "steps": [{step}]}}}}'
    with pytest.raises(lp.LayoutproofError) as problem:
        program(
            f'def main({LINE}, B: T.Buffer((4, 4), "float32")):\n    T.func_attr({{{record}}})\n    B[0, 0] = A[0]\n'
        )
    (diagnostic,) = problem.value.diagnostics
    assert "the layout record of B_data" in diagnostic.message and said in diagnostic.message
    assert diagnostic.span is not None and "func_attr" in diagnostic.span.source.line(diagnostic.span.line)
