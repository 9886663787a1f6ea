"""Traces that mend themselves: what a refusal of a step suggests, as another trace, until every step is proved.

A repair follows from the code of a refusal and from the program before the step, never from the words of a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import IntImm
from layoutproof.ir.primfunc import LAYOUT_TRANSFORMATIONS, PrimFunc
from layoutproof.ir.stmt import Block, ForKind
from layoutproof.ir.visit import walk
from layoutproof.lowering import codes
from layoutproof.lowering.cleanup.hoist_expression import Flag, HoistExpression
from layoutproof.lowering.layout.block_layouts import touched_by
from layoutproof.lowering.layout.transform_layout import ROOT, TransformLayout
from layoutproof.lowering.loops.nest import loops_of_block
from layoutproof.lowering.loops.overcompute import RemoveBranchingThroughOvercompute
from layoutproof.lowering.padding.value_search import candidate_values, search_pad_values
from layoutproof.lowering.passes.find import all_buffers, find_block, find_buffer
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.schedule.primitives import PASSES
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.lowering.schedule.trace import Trace, passes_of
from layoutproof.verify.values.fast_math import ALL, FastMathSet
from layoutproof.verify.verdict.verdict import ClaimKind

MOST_REPAIRS = 12
"""How many changes one trace may need."""
_MOST_PADS = 8
_LANES = 4


@dataclass(frozen=True, slots=True)
class Refused:
    """Step `number` of a trace, from 0, with the schedule before it and what is wrong with it."""

    trace: Trace
    number: int
    schedule: Schedule
    problem: LayoutproofError

    @property
    def left(self) -> int:
        """How many steps are not taken."""
        return len(self.trace) - self.number

    @property
    def stage(self) -> tuple[int, str]:
        """How far the trace gets, and what is wrong there."""
        return self.left, self.problem.diagnostics[0].code

    @property
    def name(self) -> str:
        """The primitive, as the trace has it."""
        return str(self.trace[self.number][0])

    @property
    def arguments(self) -> Mapping[str, Any]:
        """Its arguments, as the trace has them."""
        given: Mapping[str, Any] = self.trace[self.number][1]
        return given

    def instead(self, *steps: list[Any]) -> Trace:
        """The trace with other steps in the place of this one."""
        return [*self.trace[: self.number], *steps, *self.trace[self.number + 1 :]]

    def changed(self, option: str, value: Any) -> Trace:
        """The trace with another value of one argument."""
        return self.instead([self.name, {**self.arguments, option: value}])

    def after(self, name: str, **arguments: Any) -> Trace:
        """The trace with one more step before this one."""
        return self.instead([name, arguments], self.trace[self.number])


@dataclass(frozen=True, slots=True)
class Repair:
    """What a refusal suggests: in words, and the whole trace."""

    what: str
    trace: Trace


@dataclass(frozen=True, slots=True)
class Mended:
    """A trace after repairs, with each in words; `left` is a step that is still refused, None where all are proved."""

    trace: Trace
    repairs: tuple[str, ...]
    left: Refused | None


def mended(func: PrimFunc, trace: Trace, allowed: FastMathSet = ALL) -> Mended:
    """The trace with the repairs after which more of its steps are proved, one by one, until all are or none helps."""
    done: list[str] = []
    seen: set[tuple[int, str]] = set()
    refused = first_refused(func, trace, allowed)
    while refused is not None and len(done) < MOST_REPAIRS:
        seen.add(refused.stage)
        found = _first_that_helps(func, refused, seen, allowed)
        if found is None:
            break
        repair, refused = found
        done.append(repair.what)
        trace = repair.trace
    return Mended(trace, tuple(done), refused)


def _first_that_helps(
    func: PrimFunc, refused: Refused, seen: Set[tuple[int, str]], allowed: FastMathSet
) -> tuple[Repair, Refused | None] | None:
    """The first repair after which the trace gets further; else the first after which a step has another fault that can
    be mended, as one that names its block wrongly and its loop, too.
    """
    other: tuple[Repair, Refused | None] | None = None
    for repair in repairs_of(refused):
        further = first_refused(func, repair.trace, allowed)
        if further is None or further.left < refused.left:
            return repair, further
        if other is None and further.left == refused.left and further.stage not in seen:
            other = repair, further
    return other


def first_refused(func: PrimFunc, trace: Trace, allowed: FastMathSet = ALL) -> Refused | None:
    """The first step that is refused, or cannot be read; None where all are proved."""
    schedule = Schedule(func, allowed=allowed)
    for number, step in enumerate(trace):
        try:
            (transform,) = passes_of([step])
            schedule.apply(transform)
        except LayoutproofError as problem:
            return Refused(trace, number, schedule, problem)
    return None


def repairs_of(refused: Refused) -> Iterator[Repair]:
    """What the refusal suggests, the likeliest first. A step that is no name with arguments has no repairs."""
    step: Any = refused.trace[refused.number]
    if not isinstance(step, list | tuple) or len(step) != 2 or not isinstance(step[1], dict):
        return
    suggested = _BY_CODE.get(refused.problem.diagnostics[0].code)
    if suggested is not None:
        yield from suggested(refused)
    kinds = {v.claim.kind for v in refused.problem.verdicts} if isinstance(refused.problem, IllegalTransform) else set()
    if ClaimKind.WITHIN_BUFFER in kinds and refused.name == RemoveBranchingThroughOvercompute.primitive:
        yield Repair(
            "accesses that leave their buffer take their index modulo its extent", refused.changed("wrap", True)
        )


def _primitive(refused: Refused) -> Iterator[Repair]:
    for name in get_close_matches(refused.name, PASSES, n=1):
        yield Repair(f"{refused.name} is called {name}", refused.instead([name, dict(refused.arguments)]))


def _argument(refused: Refused) -> Iterator[Repair]:
    known = [option.name for option in PASSES[refused.name].options()]
    given = refused.arguments
    for wrong in (name for name in given if name not in known):
        for name in get_close_matches(wrong, [each for each in known if each not in given], n=1):
            renamed = {name if each == wrong else each: value for each, value in given.items()}
            yield Repair(f"the argument {wrong} is called {name}", refused.instead([refused.name, renamed]))


def _block(refused: Refused) -> Iterator[Repair]:
    blocks = [node.name for node in walk(refused.schedule.func.body) if isinstance(node, Block)]
    yield from _named(refused, "block", [*blocks, ROOT])


def _buffer(refused: Refused) -> Iterator[Repair]:
    yield from _named(refused, "buffer", [buffer.name for buffer in all_buffers(refused.schedule.func)])


def _named(refused: Refused, option: str, known: Sequence[str]) -> Iterator[Repair]:
    wrong = refused.arguments.get(option)
    if isinstance(wrong, str) and wrong not in known:
        for name in get_close_matches(wrong, known, n=1):
            yield Repair(f"the {option} {wrong} is called {name}", refused.changed(option, name))


def _loop(refused: Refused) -> Iterator[Repair]:
    known = [loop.var.name for loop in loops_of_block(refused.schedule.func, str(refused.arguments.get("block")))]
    yield from _named(refused, "loop", known)
    loops = refused.arguments.get("loops")
    wrong = (
        [each for each in loops if isinstance(each, str) and each not in known]
        if isinstance(loops, list | tuple)
        else []
    )
    for each in wrong:
        for name in get_close_matches(each, [other for other in known if other not in (loops or ())], n=1):
            renamed = [name if other == each else other for other in loops or ()]
            yield Repair(f"the loop {each} is called {name}", refused.changed("loops", renamed))


def _fused_in_order(refused: Refused) -> Iterator[Repair]:
    """Loops that are fused are named outermost first."""
    loops = refused.arguments.get("loops")
    if refused.name != "fuse" or not isinstance(loops, list | tuple):
        return
    around = [loop.var.name for loop in loops_of_block(refused.schedule.func, str(refused.arguments.get("block")))]
    named = [around[each] if isinstance(each, int) and each < len(around) else each for each in loops]
    ordered = [name for name in around if name in named]
    if len(ordered) == len(loops) and ordered != named:
        yield Repair(f"the loops stand as {', '.join(ordered)}", refused.changed("loops", ordered))


def _factors(refused: Refused) -> Iterator[Repair]:
    factors = refused.arguments.get("factors")
    if isinstance(factors, list | tuple) and factors and None not in factors:
        yield Repair("the first factor is computed", refused.changed("factors", [None, *factors[1:]]))


def _init_first(refused: Refused) -> Iterator[Repair]:
    """An init in a block of its own, before one of the loops, the outermost first."""
    func, block = refused.schedule.func, str(refused.arguments.get("block"))
    inits = [node.name for node in walk(func.body) if isinstance(node, Block) and node.init is not None]
    for name in ([block] if block in inits else []) + [each for each in inits if each != block]:
        for loop in loops_of_block(func, name):
            what = f"the init of {name} has a block of its own before loop {loop.var.name}"
            yield Repair(what, refused.after("decompose_reduction", block=name, loop=loop.var.name))


def _blocks_lowered(refused: Refused) -> Iterator[Repair]:
    yield Repair("lower_blocks comes first", refused.after("lower_blocks"))


def _temporary(refused: Refused) -> Iterator[Repair]:
    """A step that has to come first, for a buffer that the function allocates."""
    func = refused.schedule.func
    if refused.arguments.get("buffer") in [buffer.name for buffer in func.buffers]:
        return
    if func.attrs.get(LAYOUT_TRANSFORMATIONS) is not None:
        yield Repair("apply_buffer_transforms comes first", refused.after("apply_buffer_transforms"))
    if refused.name == "sink_allocation":
        yield from _blocks_lowered(refused)


def _lanes(refused: Refused) -> Iterator[Repair]:
    """A vectorized loop of constant extent, and one of two that are nested."""
    block, name = refused.arguments.get("block"), refused.arguments.get("loop")
    loops = loops_of_block(refused.schedule.func, str(block))
    loop = next((each for each in loops if each.var.name == name), None)
    if loop is None:
        return
    if not isinstance(loop.extent, IntImm):
        split = ["split", {"block": block, "loop": name, "factors": [None, _LANES]}]
        inner = [refused.name, {**refused.arguments, "loop": f"{name}_1"}]
        yield Repair(f"the loop {name} is split by {_LANES} lanes", refused.instead(split, inner))
        return
    pair = [each.var.name for each in loops if each is loop or each.kind is ForKind.VECTORIZED]
    if len(pair) == 2:
        fused = ["fuse", {"block": block, "loops": pair}]
        yield Repair(f"the loops {' and '.join(pair)} are fused", refused.instead(fused))


def _flags(refused: Refused) -> Iterator[Repair]:
    """A flag by its right name."""
    given = refused.arguments.get("flags")
    for wrong in [each for each in given if each not in list(Flag)] if isinstance(given, list | tuple) else []:
        for name in get_close_matches(str(wrong), [flag.value for flag in Flag if flag not in (given or ())], n=1):
            renamed = [name if each == wrong else each for each in given or ()]
            yield Repair(f"the flag {wrong} is called {name}", refused.changed("flags", renamed))


def _let_comes_along(refused: Refused) -> Iterator[Repair]:
    given = list(refused.arguments.get("flags", HoistExpression().flags))
    flag = Flag.REQUIRED_BY_CONDITIONAL.value
    if flag not in given:
        yield Repair(f"with the flag {flag}", refused.changed("flags", [*given, flag]))


def _switched(option: str, value: bool) -> Callable[[Refused], Iterator[Repair]]:
    """A switch of the primitive that is to be set."""

    def suggested(refused: Refused) -> Iterator[Repair]:
        if refused.arguments.get(option) != value and option in {each.name for each in PASSES[refused.name].options()}:
            yield Repair(f"{option} is {str(value).lower()}", refused.changed(option, value))

    return suggested


def _vectors_as_elements(refused: Refused) -> Iterator[Repair]:
    yield Repair("buffers have vectors as elements", refused.instead(["vector_type_rewrite", {}]))


def _pad_values(refused: Refused) -> Iterator[Repair]:
    """Pad values with which the branch can go: of one buffer as `pad-values` finds it, else one for all operands."""
    block = refused.arguments.get("block")
    relaid = list(_relaid(refused))
    if not isinstance(block, str) or not relaid:
        return
    for number, name in relaid:
        best = search_pad_values(refused.schedule.steps, block, name).best
        if best is not None:
            trace = _padded(refused.trace, {number: best.candidate.pad})
            yield Repair(f"the padding of {name} holds {best.candidate}", trace)
    if block == ROOT:
        return
    written = {access.buffer.name for access in touched_by(refused.schedule.func, block).written}
    operands = [(number, name) for number, name in relaid if name not in written]
    results: dict[int, Any] = {number: "T.undef()" for number, name in relaid if name in written}
    for _, first in operands[:1]:
        buffer = find_buffer(refused.schedule.func, first)
        for candidate in candidate_values(find_block(refused.schedule.func, block), buffer)[:_MOST_PADS]:
            values = results | {number: candidate.pad for number, _ in operands}
            names = ", ".join(name for _, name in operands)
            yield Repair(f"the padding of {names} holds {candidate}", _padded(refused.trace, values))


def _relaid(refused: Refused) -> Iterable[tuple[int, str]]:
    """The last layout of each buffer before the step, by its number in the trace."""
    last: dict[str, int] = {}
    for number, step in enumerate(refused.schedule.steps):
        if isinstance(step.transform, TransformLayout):
            last[step.transform.buffer] = number
    return [(number, buffer) for buffer, number in last.items()]


def _padded(trace: Trace, pads: Mapping[int, Any]) -> Trace:
    """The trace with other pad values in some steps."""
    return [
        [step[0], {**step[1], "pad_value": pads[number]}] if number in pads else step
        for number, step in enumerate(trace)
    ]


_BY_CODE: Mapping[str, Callable[[Refused], Iterator[Repair]]] = {
    codes.UNKNOWN_PRIMITIVE: _primitive,
    codes.UNKNOWN_ARGUMENT: _argument,
    codes.NO_BLOCK: _block,
    codes.NO_BUFFER: _buffer,
    codes.NO_LOOP: _loop,
    codes.LOOP_NEST: _fused_in_order,
    codes.SPLIT_FACTORS: _factors,
    codes.INIT_PLACE: _init_first,
    codes.PARTITION: _init_first,
    codes.BLOCKS_FIRST: _blocks_lowered,
    codes.NOT_TEMPORARY: _temporary,
    codes.LANES: _lanes,
    codes.HOIST_FLAG: _flags,
    codes.LET_INSIDE: _let_comes_along,
    codes.EXPANSION: _switched("expand", False),
    codes.NO_LANES: _switched("scalarize", True),
    codes.POINTER_CASTS: _vectors_as_elements,
    codes.PAD_VALUE: _pad_values,
    codes.BRANCH_NEEDED: _pad_values,
}
