"""What the front end refuses, and in which words: one entry of the golden file for each refusal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest
from tests.conftest import Golden

from layoutproof import te
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.lowering import codes


def given(*shape: object, dtype: str = "float32", name: str = "A") -> te.Tensor:
    """A placeholder."""
    return te.placeholder(shape, dtype, name)


def summed_inside() -> te.Tensor:
    """A reduction that something is added to."""
    a, k = given(4, 5), te.reduce_axis(5, "k")
    return te.compute(4, lambda i: te.sum(a[i, k], axis=k) + 1.0, "B")


def summed_twice() -> te.Tensor:
    """A reduction in a reduction."""
    a, k, j = given(4, 5), te.reduce_axis(5, "k"), te.reduce_axis(4, "j")
    return te.compute(4, lambda i: te.max(te.sum(a[j, k], axis=k), axis=j), "B")


def not_reduced() -> te.Tensor:
    """A reduction axis without its reduction."""
    a, k = given(4, 5), te.reduce_axis(5, "k")
    return te.compute(4, lambda i: a[i, k], "B")


def another_axis() -> te.Tensor:
    """A formula with the axis of another tensor."""
    a = given(4)
    b = te.compute(4, lambda i: a[i], "B")
    return te.compute(4, lambda j: a[b.op.axis[0]], "C")


def copied(name: str = "B", shape: object = 4) -> te.Tensor:
    """A copy of a placeholder `A`."""
    a = te.placeholder(shape, name="A")
    return te.compute(shape, lambda *i: a(*i), name)


def two_of_a_name() -> te.ComputeSchedule:
    """Two tensors called `compute`, as they are by default."""
    a = given(4)
    first = te.compute(4, lambda i: a[i] + 1.0)
    return te.create_schedule(te.compute(4, lambda i: first[i] * 2.0))


def two_inputs_of_a_name() -> te.ComputeSchedule:
    """Two placeholders of one name, even of one shape."""
    a, b = given(4), given(4)
    return te.create_schedule(te.compute(4, lambda i: a[i] + b[i], "C"))


def size_called_like_a_tensor() -> te.ComputeSchedule:
    """A size whose name is a tensor's."""
    n = te.var("A")
    a = given(n)
    return te.create_schedule(te.compute(n, lambda i: a[i], "B"))


def size_of_two_types() -> te.ComputeSchedule:
    """A size that is of 32 bits in one shape and of 64 in another."""
    a, b = given(te.var("n")), given(te.var("n", "int64"), name="B")
    return te.create_schedule(te.compute(4, lambda i: a[i] + b[i], "C"))


def missing_input() -> object:
    """A function without one of its inputs."""
    a, b = given(4), given(4, name="B")
    c = te.compute(4, lambda i: a[i] + b[i], "C")
    return te.create_prim_func([a, c])


def missing_number() -> object:
    """A function without a number that it uses."""
    a, alpha = given(4), te.var("alpha", "float32")
    return te.create_prim_func([a, te.compute(4, lambda i: a[i] * alpha, "B")])


def parameter_twice() -> object:
    """A tensor that is a parameter twice."""
    a = given(4)
    return te.create_prim_func([a, a, te.compute(4, lambda i: a[i], "B")])


def stale_axis() -> object:
    """An axis that was split, split again."""
    b = copied()
    schedule = te.create_schedule(b)
    schedule[b].split(b.op.axis[0], factor=2)
    return schedule[b].split(b.op.axis[0], factor=2)


def stored_tensor_read() -> object:
    """A formula that reads what a schedule stores."""
    b = copied()
    stored = te.create_schedule(b)[b].transform_layout(lambda i: [i // 2, i % 2])
    return te.compute((2, 2), lambda i, j: stored[i, j], "C")


def scheduled(change: Callable[[te.ComputeSchedule, te.Tensor], object]) -> Callable[[], object]:
    """What becomes of a scheduled copy of 6 by 4 elements."""

    def attempt() -> object:
        b = copied(shape=(6, 4))
        return change(te.create_schedule(b), b)

    return attempt


@dataclass(frozen=True)
class Refusal:
    """Something that must be refused with a code."""

    code: str
    attempt: Callable[[], object]


REFUSALS: Mapping[str, Refusal] = {
    "shape_of_floats": Refusal(codes.TE_SHAPE, lambda: given(2.5)),
    "shape_of_text": Refusal(codes.TE_SHAPE, lambda: given("n")),
    "shape_negative": Refusal(codes.TE_SHAPE, lambda: given(4, -1)),
    "shape_of_float_variable": Refusal(codes.TE_SHAPE, lambda: given(te.var("x", "float32"))),
    "range_of_three": Refusal(codes.TE_SHAPE, lambda: te.reduce_axis((0, 1, 2), "k")),
    "range_backwards": Refusal(codes.TE_SHAPE, lambda: te.reduce_axis((4, 0), "k")),
    "range_of_text": Refusal(codes.TE_SHAPE, lambda: te.reduce_axis((0, "n"), "k")),
    "dtype_unknown": Refusal(codes.TE_DTYPE, lambda: given(4, dtype="float23")),
    "dtype_is_the_name": Refusal(codes.TE_DTYPE, lambda: te.placeholder((4,), "A")),
    "dtype_handle": Refusal(codes.TE_DTYPE, lambda: given(4, dtype="handle")),
    "name_with_a_blank": Refusal(codes.TE_NAME, lambda: given(4, name="my tensor")),
    "name_reserved": Refusal(codes.TE_NAME, lambda: te.compute(4, lambda i: 1, "lambda")),
    "names_twice": Refusal(codes.TE_NAME, two_of_a_name),
    "inputs_names_twice": Refusal(codes.TE_NAME, two_inputs_of_a_name),
    "size_called_like_a_tensor": Refusal(codes.TE_NAME, size_called_like_a_tensor),
    "size_of_two_types": Refusal(codes.TE_NAME, size_of_two_types),
    "read_at_too_few": Refusal(codes.TE_INDEX, lambda: te.compute(4, lambda i: given(4, 5)[i], "B")),
    "read_at_a_float": Refusal(codes.TE_INDEX, lambda: te.compute(4, lambda i: given(4)[0.5], "B")),
    "read_at_a_float_expression": Refusal(codes.TE_INDEX, lambda: te.compute(4, lambda i: given(4)[given(4)[i]], "B")),
    "function_of_too_many": Refusal(codes.TE_FUNCTION, lambda: te.compute(4, lambda i, j: 1, "B")),
    "function_of_keywords": Refusal(codes.TE_FUNCTION, lambda: te.compute(4, lambda i, *, j: 1, "B")),
    "function_is_none": Refusal(codes.TE_FUNCTION, lambda: te.compute(4, None, "B")),  # type: ignore[arg-type]  # refused
    "value_is_a_tensor": Refusal(codes.TE_VALUE, lambda: te.compute(4, lambda i: given(4), "B")),
    "value_is_a_list": Refusal(codes.TE_VALUE, lambda: te.compute(4, lambda i: [given(4)[i], 1.0], "B")),
    "value_of_mixed_types": Refusal(codes.TE_VALUE, lambda: te.compute(4, lambda i: given(4)[i] + i, "B")),
    "value_with_python_if": Refusal(codes.TE_VALUE, lambda: te.compute(4, lambda i: 1.0 if i < 2 else 2.0, "B")),
    "branch_of_python_equality": Refusal(
        codes.TE_VALUE, lambda: te.compute(4, lambda i: given(4)[i] if i % 2 == 0 else 0.0, "B")
    ),
    "value_of_python_equality": Refusal(codes.TE_VALUE, lambda: te.compute(4, lambda i: given(4)[i] == 1.0, "B")),
    "value_undefined_name": Refusal(codes.TE_VALUE, lambda: te.compute(4, lambda i: i.undefined, "B")),
    "exp_of_an_integer": Refusal(codes.TE_VALUE, lambda: te.compute(4, lambda i: te.exp(i), "B")),
    "max_of_text": Refusal(codes.TE_VALUE, lambda: te.max("a", "b")),  # type: ignore[arg-type]  # refused
    "stored_tensor_read": Refusal(codes.TE_VALUE, stored_tensor_read),
    "reduction_inside": Refusal(codes.TE_REDUCTION, summed_inside),
    "reduction_in_a_reduction": Refusal(codes.TE_REDUCTION, summed_twice),
    "reduction_over_an_index": Refusal(
        codes.TE_REDUCTION, lambda: te.compute(4, lambda i: te.sum(given(4)[i], axis=i), "B")
    ),
    "reduction_over_nothing": Refusal(codes.TE_REDUCTION, lambda: te.sum(given(4)[0], axis=[])),
    "reduction_of_a_number": Refusal(codes.TE_REDUCTION, lambda: te.sum(1, axis=te.reduce_axis(4, "k"))),
    "axis_not_reduced": Refusal(codes.TE_REDUCTION, not_reduced),
    "axis_of_another": Refusal(codes.TE_REDUCTION, another_axis),
    "missing_input": Refusal(codes.TE_PARAMETERS, missing_input),
    "missing_number": Refusal(codes.TE_PARAMETERS, missing_number),
    "missing_size": Refusal(codes.TE_PARAMETERS, lambda: te.create_schedule(copied(shape=te.var("n") * 2))),
    "parameter_twice": Refusal(codes.TE_PARAMETERS, parameter_twice),
    "parameter_is_a_number": Refusal(codes.TE_PARAMETERS, lambda: te.create_prim_func([copied(), 4])),  # type: ignore[list-item]  # refused
    "nothing_is_computed": Refusal(codes.TE_PARAMETERS, lambda: te.create_prim_func([given(4)])),
    "schedule_of_an_input": Refusal(codes.TE_PARAMETERS, lambda: te.create_schedule(given(4))),
    "stage_of_another_program": Refusal(codes.TE_STAGE, scheduled(lambda s, b: s[copied("C")])),
    "split_by_nothing": Refusal(codes.TE_STAGE, scheduled(lambda s, b: s[b].split(b.op.axis[0]))),
    "split_by_both": Refusal(codes.TE_STAGE, scheduled(lambda s, b: s[b].split(b.op.axis[0], 2, 3))),
    "split_of_a_stale_axis": Refusal(codes.TE_STAGE, stale_axis),
    "split_of_a_name": Refusal(codes.TE_STAGE, scheduled(lambda s, b: s[b].split("i0", factor=2))),  # type: ignore[arg-type]  # refused
    "padding_unsaid": Refusal(
        codes.TE_PADDING, scheduled(lambda s, b: s[b].transform_layout(lambda i, j: [i // 4, j, i % 4]))
    ),
    "not_injective": Refusal("LP314", scheduled(lambda s, b: s[b].transform_layout(lambda i, j: [i // 4, j]))),
    "map_of_another_rank": Refusal("LP101", scheduled(lambda s, b: s[b].transform_layout(lambda i: [i]))),
    "split_factor_zero": Refusal("LP313", scheduled(lambda s, b: s[b].split(b.op.axis[0], factor=0))),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_say_why(name: str, golden: Golden) -> None:
    """Each refusal has its own message, which says what was given and what is expected."""
    with pytest.raises(LayoutproofError) as caught:
        REFUSALS[name].attempt()
    golden.entry("te_refusals.txt", name, f"{caught.value}\n")
    assert caught.value.diagnostics[0].code == REFUSALS[name].code


def test_every_code_is_refused_with() -> None:
    """Each code of the front end stands for some refusal above."""
    assert {code for code in codes.MEANINGS if code >= codes.TE_SHAPE} <= {
        refusal.code for refusal in REFUSALS.values()
    }


def test_tensors_are_not_iterated() -> None:
    """A tensor is no sequence: a loop over one would never end."""
    with pytest.raises(TypeError, match="not iterable"):
        list(given(4))  # type: ignore[call-overload]  # that it is refused is what is tested
