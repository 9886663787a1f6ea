"""Witnesses that lie in step with the graph that they belong to: nothing is proved of what a run, or another reader,
can tell apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from tests.graph.nets import arrays_for, filled, running_example
from tests.records import read_record

from layoutproof.graph import codes
from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.flow.layout_flow import NAME, relaid
from layoutproof.graph.model.graph import Call, Constant, Graph, LayoutTransform, Value
from layoutproof.graph.model.graph_run import run_graph
from layoutproof.graph.model.graph_witness import AS_IT_WAS, Chain, GraphRewrite, Interface, Place
from layoutproof.graph.planning.planner import plan
from layoutproof.graph.prove.prove_graph import chain_problem, prove_graph_rewrite
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import FLOAT16, FLOAT32, INT64
from layoutproof.ir.expr import Expr, Var, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.intrinsics import Undef
from layoutproof.ir.layout_record import with_record
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import For
from layoutproof.ir.visit import walk
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.step_record import StepRecord
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict

AS_IT_IS = IndexMap.identity(1)
BACK = parse_index_map("lambda i0: [7 - i0]")


def steps(body: str, results: str = "B", name: str = "f") -> PrimFunc:
    """A function from `A` to some results, of eight elements each."""
    arrays = ", ".join(f'{array}: T.Buffer((8,), "float32")' for array in ("A", *results))
    return loads(f"@T.prim_func\ndef {name}({arrays}):\n{body}\n", "f.py")


def statuses(rewrite: GraphRewrite, interface: Interface = AS_IT_WAS) -> Mapping[str, Status]:
    """What is said of each value, and of the outputs."""
    return {
        v.claim.text.removesuffix(" holds what the witness says"): v.status
        for v in prove_graph_rewrite(rewrite, interface)
    }


def called_twice(graph: Graph) -> GraphRewrite:
    """The graph with its first step made twice; the second operand of each call of two operands comes of the second."""
    rewrite = plan(graph, {}).rewrite
    first, *others = rewrite.new.steps
    assert isinstance(first, Call)
    names = {value.name: f"{value.name}_again" for value in first.results}
    again = replace(first, results=tuple(replace(value, name=names[value.name]) for value in first.results))
    changed = []
    for step in others:
        assert isinstance(step, Call)
        one, two = step.operands
        changed.append(replace(step, operands=(one, names.get(two, two))))
    places = {**rewrite.places, **{other: rewrite.places[name] for name, other in names.items()}}
    return replace(rewrite, new=replace(rewrite.new, steps=(first, again, *changed)), places=places)


def with_something_open(kind: str) -> Graph:
    """The difference of a value and itself, or of two results of a call, where the values are not wholly determined."""
    g = GraphBuilder("open")
    x = g.input("x", (8,))
    made: tuple[Value, ...]
    if kind == "undefined padding":
        made = (g.pad(x, [(0, 2)], None),)
    elif kind == "elements that nobody writes":
        made = g.call(steps("    for i in range(7):\n        B[i] = A[i]"), x)
    elif kind == "a call out of the graph":
        made = g.call(steps('    for i in range(8):\n        B[i] = A[i] + T.call_extern("float32", "rand")'), x)
    else:
        body = "    for i in range(8):\n        B[i] = T.undef()\n    for i in range(8):\n        C[i] = B[i]"
        made = g.call(steps(body, "BC"), x)
    return g.build(g.binary("subtract", made[0], made[-1]))


@pytest.mark.parametrize(
    "kind",
    ["undefined padding", "elements that nobody writes", "a call out of the graph", "one result of each of two calls"],
)
def test_what_one_call_leaves_open_another_may_settle_otherwise(kind: str) -> None:
    """A value that is not wholly determined is one value for all who use it: made twice, nothing is proved of what both
    are used in.
    """
    graph = with_something_open(kind)
    assert set(statuses(plan(graph, {}).rewrite).values()) == {Status.PROVED}
    found = statuses(called_twice(graph))
    assert found["subtract"] is Status.UNKNOWN and found["the outputs are the old ones"] is Status.UNKNOWN


@pytest.mark.parametrize("kind", ["left out", "in another order"])
def test_calls_out_of_a_graph_stay_as_they_are(kind: str) -> None:
    """A call that does something outside of the graph is neither left out, though nobody uses its result, nor put
    behind another one.
    """
    g = GraphBuilder("outside")
    x = g.input("x", (8,))
    for name in ("first", "second"):
        g.call(
            steps(
                f'    for i in range(8):\n        B[i] = A[i]\n    T.evaluate(T.call_extern("int32", "{name}"))',
                name=name,
            ),
            x,
        )
    rewrite = plan(g.build(g.relu(x)), {}).rewrite
    assert set(statuses(rewrite).values()) == {Status.PROVED}
    one, two, last = rewrite.new.steps
    changed = replace(rewrite.new, steps=(two, last) if kind == "left out" else (two, one, last))
    assert statuses(replace(rewrite, new=changed))["the outputs are the old ones"] is Status.UNKNOWN


def back_and_back(second: IndexMap) -> GraphRewrite:
    """A relu behind three transforms, the first and the third of which turn the array around; the witness says that the
    second does too.
    """
    g = GraphBuilder("maps")
    graph = g.build(g.relu(g.input("x", (8,))))
    (call,) = graph.steps
    assert isinstance(call, Call)
    one, two, three = (Value(name, (8,), FLOAT32) for name in ("one", "two", "three"))
    new = replace(
        graph,
        steps=(
            LayoutTransform(one, "x", BACK),
            LayoutTransform(two, "one", second),
            LayoutTransform(three, "two", BACK),
            replace(call, operands=("three",)),
        ),
    )
    places = {"x": AS_IT_IS, "one": BACK, "two": BACK, "three": AS_IT_IS}
    said = {name: Place("x", index_map) for name, index_map in places.items()} | {"relu": Place("relu", AS_IT_IS)}
    return GraphRewrite(graph, new, said, {"relu": Chain(call.function, ())})


def test_a_map_over_other_variables_than_its_indices() -> None:
    """A variable that only has the name of an index is none: the text of such a map says what the map does not do."""
    assert set(statuses(back_and_back(AS_IT_IS)).values()) == {Status.PROVED}
    looks = IndexMap((Var("i0"),), (const(7, INT64) - Var("i0", INT64),))
    with pytest.raises(
        LayoutproofError, match=f"{codes.TRANSFORM_MAP}.*over other variables than the indices that it takes"
    ):
        prove_graph_rewrite(back_and_back(looks))
    rewrite = back_and_back(AS_IT_IS)
    wrong = replace(rewrite, places={**rewrite.places, "two": Place("x", looks)})
    assert Status.PROVED not in statuses(wrong).values()


def turned(declared: bool) -> GraphRewrite:
    """A relu whose result is stored as it was, while its layout record says that it is stored back to front, and then
    turned around.
    """
    g = GraphBuilder("records")
    graph = g.build(g.relu(g.input("x", (8,))))
    (call,) = graph.steps
    assert isinstance(call, Call)
    old = replace(call.function, name=NAME)
    data = old.buffers[1].data.name
    record = read_record((8,), ("lambda i: [7 - i]", (8,), None))
    new = replace(old, attrs=with_record(old, data, record))
    witness = Witness((InstanceMap(0, 0, AS_IT_IS),), changes_interface=("Y",) if declared else ())
    chain = Chain(old, (StepRecord("split", {}, Rewrite(old, new, witness), None, frozenset()),))
    made = Value("made", (8,), FLOAT32)
    after = replace(
        graph, steps=(Call((made,), replace(new, name="relu"), ("x",)), LayoutTransform(call.results[0], "made", BACK))
    )
    places = {"x": Place("x", AS_IT_IS), "made": Place("relu", BACK), "relu": Place("relu", AS_IT_IS)}
    return GraphRewrite(graph, after, places, {"relu": chain})


@pytest.mark.parametrize("declared", [False, True], ids=["not declared", "declared"])
def test_a_layout_record_that_was_made_up(declared: bool) -> None:
    """A step that only states another layout in the record, which is where a layout is read from, is not proved."""
    wrong = turned(declared)
    inputs = arrays_for(wrong.old)
    assert not np.array_equal(run_graph(wrong.old, inputs)[0], run_graph(wrong.new, inputs)[0])
    assert statuses(wrong)["made"] is Status.UNKNOWN


def test_steps_that_nobody_looked_at() -> None:
    """Where verdicts on steps are given, a step of which they say nothing is not proved."""
    (func,) = plan(running_example(), {}).rewrite.new.functions()[1:2]
    made = relaid(func, {func.buffers[0].name: parse_index_map("lambda n, c, h, w: [n, h, w, c]")})
    after = replace(made.func, name="after")
    assert len(made.records) > 0 and chain_problem(made, func, after) is None
    assert chain_problem(made, func, after, ()) == "step 1 has no verdicts"
    assert chain_problem(made, func, after, ((),)) == "step 1 has no verdicts"


def test_programs_on_the_way_are_well_formed() -> None:
    """A step to a program that no rule holds for, a loop in a loop of its own name here, proves nothing, whatever is
    said of it.
    """
    func = steps("    for i in range(8):\n        B[i] = A[i]")
    loop = next(node for node in walk(func.body) if isinstance(node, For))
    between = func.with_body(replace(loop, body=replace(loop, extent=const(1))))
    witness = Witness((InstanceMap(0, 0, AS_IT_IS),))
    pairs = (Rewrite(func, between, witness), Rewrite(between, func, witness))
    chain = Chain(func, tuple(StepRecord("split", {}, each, None, frozenset()) for each in pairs))
    good = (Verdict(Status.PROVED, Claim(ClaimKind.OTHER, "it is the same"), "symbolic"),)
    assert chain_problem(chain, func, func, (good, good)) == "step 1 leads to a program that is not well-formed"
    assert chain_problem(Chain(func, ()), func, func, ()) is None


def test_a_nan_of_other_bits_is_another_constant() -> None:
    """Constants are compared by their bits, those of NaNs too, at which a function may look."""
    g = GraphBuilder("nan")
    data = filled(8)
    data[3] = np.nan
    rewrite = plan(g.build(g.add(g.input("x", (8,)), g.constant(data, "c"))), {}).rewrite
    other = data.copy()
    other.view(np.uint32)[3] ^= 1
    assert np.isnan(other[3])
    (constant,) = rewrite.new.constants
    wrong = replace(rewrite, new=replace(rewrite.new, constants=(Constant(constant.value, other),)))
    assert statuses(rewrite)["c"] is Status.PROVED and statuses(wrong)["c"] is Status.UNKNOWN


def test_a_digest_stands_for_elements_that_are_not_there() -> None:
    """A constant with a digest and elements besides is malformed, and a graph is not run without the elements of its
    constants.
    """
    rewrite = plan(running_example(), {}).rewrite
    first, *others = rewrite.new.constants
    for data, message in (
        (first.data + 1, "only the SHA-256 is to be known"),
        (first.data * 0, "are not known, only their SHA-256"),
    ):
        new = replace(rewrite.new, constants=(Constant(first.value, data, sha256=first.digest), *others))
        with pytest.raises(LayoutproofError, match=f"{codes.CONSTANT_DATA}.*{message}"):
            prove_graph_rewrite(replace(rewrite, new=new))
            run_graph(new, arrays_for(rewrite.old))


def test_nothing_is_proved_of_what_rests_on_something_unproved() -> None:
    """One element of a filter is changed: whatever is made of it, and the output, is not said to hold what it held."""
    rewrite = plan(running_example(), {}).rewrite
    constant = next(each for each in rewrite.new.constants if each.value.name == "bias")
    data = constant.data.copy()
    data.reshape(-1)[0] += 1
    constants = tuple(Constant(each.value, data) if each is constant else each for each in rewrite.new.constants)
    found = statuses(replace(rewrite, new=replace(rewrite.new, constants=constants)))
    assert [name for name, status in found.items() if status is Status.PROVED] == ["x", "f", "f2", "conv2d"]


def test_only_a_claim_that_fails_somewhere_is_refuted() -> None:
    """That elements stand elsewhere refutes what is said of an input; those of a computed value may all be alike."""
    rewrite = back_and_back(AS_IT_IS)
    wrong = replace(rewrite, places={**rewrite.places, "two": Place("x", AS_IT_IS)})
    assert statuses(wrong)["two"] is Status.REFUTED
    assert statuses(replace(wrong, places={**wrong.places, "one": Place("x", AS_IT_IS)}))["two"] is Status.UNKNOWN
    g = GraphBuilder("alike")
    graph = g.build(g.relu(g.layout_transform(g.relu(g.input("x", (8,))), BACK)))
    first = next(step for step in graph.steps if isinstance(step, LayoutTransform))
    same = GraphRewrite(
        graph,
        graph,
        {value.name: Place(value.name, AS_IT_IS) for value in graph.values()}
        | {first.result.name: Place(first.operand, AS_IT_IS)},
        {step.function.name: Chain(step.function, ()) for step in graph.steps if isinstance(step, Call)},
    )
    assert statuses(same)[first.result.name] is Status.UNKNOWN


@pytest.mark.parametrize(
    "pad", [const(0.0, FLOAT16), Undef(FLOAT32), Var("p0", FLOAT32)], ids=["of another type", "undefined", "by place"]
)
def test_padding_is_said_to_hold_one_number_of_its_type(pad: Expr) -> None:
    """What depends on the place would be said of other cells once it is moved; nothing but a number is taken."""
    rewrite = plan(running_example(), {}).rewrite
    wrong = replace(rewrite, places={**rewrite.places, "x": replace(rewrite.places["x"], pad=pad)})
    assert set(statuses(wrong).values()) == {Status.UNKNOWN}


def test_an_interface_speaks_of_inputs() -> None:
    """An interface with a layout for something that is no input is not one by which the graph is called."""
    rewrite = plan(running_example(), {}).rewrite
    strange = Interface({"conv2d": parse_index_map("lambda n, c, h, w: [n, h, w, c]")})
    assert statuses(rewrite, strange)["the outputs are the old ones"] is Status.UNKNOWN


def test_a_wish_that_a_function_has_already_is_no_obstacle() -> None:
    """A function that lists what is to be re-laid in it is planned and proved like any other."""
    wish = 'T.func_attr({"buffer_layout_transformations": {"A_data": ["lambda i: [i//4, i%4]"]}})'
    g = GraphBuilder("wish")
    graph = g.build(
        *g.call(steps(f"    {wish}\n    for i in range(8):\n        B[i] = A[i] + T.float32(1)"), g.input("x", (8,)))
    )
    for frozen in ({}, {"f": {"A": "lambda i: [i//2, i%2]"}}, {"f": {"B": ("lambda i: [i//3, i%3]", 0)}}):
        assert set(statuses(plan(graph, frozen).rewrite).values()) == {Status.PROVED}


def test_rewrites_between_layouts_that_take_an_axis_of_one_element_apart() -> None:
    """From blocks of an axis with one element to other such blocks the padding moves along: the map is a bijection of
    what is stored.
    """
    g = GraphBuilder("one")
    graph = g.build(g.relu(g.unary("abs", g.input("x", (1, 3, 2, 2)))))
    apart = "lambda n, c, h, w: [n//4, c, h, w, n%4]"
    other = "lambda n, c, h, w: [c, n//4, n%4, w, h]"
    found = plan(graph, {"abs": {"Y": apart}, "relu": {"X": other}})
    assert any(isinstance(step, LayoutTransform) and step.operand == "abs" for step in found.rewrite.new.steps)
    assert set(statuses(found.rewrite).values()) == {Status.PROVED}
    inputs = arrays_for(graph)
    np.testing.assert_array_equal(run_graph(graph, inputs)[0], run_graph(found.rewrite.new, inputs)[0])


def test_blocks_of_channels_that_come_in_another_order() -> None:
    """Channels that are reversed and then put in blocks that they do not fill: such a plan is made, and proved."""
    g = GraphBuilder("turned")
    turned_around = g.layout_transform(g.relu(g.input("x", (1, 3, 2, 2))), "lambda n, c, h, w: [n, 2 - c, h, w]")
    graph = g.build(g.unary("abs", turned_around))
    found = plan(graph, {"abs": {"X": "lambda n, c, h, w: [n, c//4, h, w, c%4]"}})
    assert set(statuses(found.rewrite).values()) == {Status.PROVED}
    inputs = arrays_for(graph)
    np.testing.assert_array_equal(run_graph(graph, inputs)[0], run_graph(found.rewrite.new, inputs)[0])


def with_open_padding(filled: bool) -> PrimFunc:
    """A copy into blocks of four whose padding a record leaves open, filled with 0 or not."""
    step = '{"index_map": "lambda i: [i//4, i%4]", "shape": [2, 4], "contract": "undef"}'
    record = f'{{"B_data": {{"logical_shape": [6], "steps": [{step}]}}}}'
    fill = """    for p, q in T.grid(2, 4):
        if 4 * p + q >= 6:
            B[p, q] = T.float32(0)
"""
    return loads(
        f"""@T.prim_func
def f(A: T.Buffer((6,), "float32"), B: T.Buffer((2, 4), "float32")):
    T.func_attr({{"tir.noalias": True, "layoutproof.layout": {record}}})
    for p, q in T.grid(2, 4):
        if 4 * p + q < 6:
            B[p, q] = A[4 * p + q]
{fill if filled else ""}""",
        "f.py",
    )


def test_padding_that_a_record_leaves_open_is_read_by_others() -> None:
    """A function may stop filling its result's padding that its record leaves undefined; in a graph others read it."""
    old, new = with_open_padding(True), with_open_padding(False)
    g = GraphBuilder("open")
    made = g.call(old, g.input("x", (6,)))[0]
    rewrite = plan(g.build(g.relu(made)), {}).rewrite
    first, *others = rewrite.new.steps
    assert isinstance(first, Call)
    name = first.function.name
    changed = replace(rewrite.new, steps=(replace(first, function=replace(new, name=name)), *others))
    variables = tuple(node.var for node in walk(new.body) if isinstance(node, For))
    claim = InstanceMap(0, 0, IndexMap(variables, variables))
    step = Rewrite(replace(old, name=NAME), replace(new, name=NAME), Witness((claim,)))
    assert {v.status for v in prove_rewrite(step).verdicts} == {Status.PROVED}
    chain = Chain(step.old, (StepRecord("drop", {}, step),))
    x = {"x": np.ones(6, np.float32)}
    assert run_graph(rewrite.new, x)[0].tobytes() != run_graph(changed, x)[0].tobytes()
    found = statuses(replace(rewrite, new=changed, schedules={**rewrite.schedules, name: chain}))
    assert found["f"] is Status.UNKNOWN and found["the outputs are the old ones"] is Status.UNKNOWN
