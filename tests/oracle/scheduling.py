"""Random schedules: what is printed after the accepted steps, compiled by TVM, gives what the first text gives,
compiled by TVM.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from random import Random
from typing import Any

import numpy as np

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import LayoutproofError, Severity
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import IntImm
from layoutproof.ir.interp.run import same_values
from layoutproof.ir.intrinsics import Undef
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.lint import check_upstream
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import Allocate, Block, For, ForKind, Stmt
from layoutproof.ir.visit import children, walk
from layoutproof.lowering.lower.undef import RemoveAssume, RemoveStoreUndef
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.runtime.array_layouts import Packer, runtime_layouts
from layoutproof.lowering.schedule.primitives import PASSES
from layoutproof.lowering.schedule.schedule import LOWERING, Schedule
from layoutproof.verify.values.fast_math import FastMathSet
from tests.lowering.small_operators import CONCRETE, random_map, small_text
from tests.oracle.comparing import SIMPLIFIED, Difference, failure_kind, without_wraps
from tests.oracle.messages import Job
from tests.oracle.numbers import random_array
from tests.oracle.ours import interpret
from tests.oracle.runner import Outcome, Runner
from tests.random.typed_expressions import Cell
from tests.random.typed_programs import DOCUMENTED, Program, random_program

Array = np.ndarray[Any, Any]

ATTEMPTS = 6
_MOST_CELLS = 1 << 20
COMPARED = "schedules compared"
_BIT_FOR_BIT: FastMathSet = frozenset()
_LOOPS = (
    "split",
    "split",
    "reorder",
    "fuse",
    "parallel",
    "vectorize",
    "unroll",
    "partition",
    "merge_adjacent_loops",
    "stream",
)
_BLOCKS = (
    "reduce_loop_extents",
    "transform_block_layout",
    "sequential_buffer_access",
    "remove_branching_through_overcompute",
)
_CACHES = (
    "cache_read",
    "cache_write",
    "reindex",
    "compact_buffer",
    "sink_allocation",
    "inject_double_buffer",
    "decompose_padding",
)
_OTHERS = ("transform_layout",) * 4 + ("simplify", "remove_no_op", "hoist_expression", "pad_einsum", "lower_blocks")
KINDS = (*_LOOPS, *_BLOCKS, *_CACHES, *_OTHERS)


@dataclass(frozen=True)
class Scheduled:
    """A program, the steps that were accepted, and the program that they lead to, its arrays packed as its parameters
    are laid out.
    """

    program: Program
    steps: tuple[str, ...]
    func: PrimFunc
    text: str
    runs: tuple[tuple[Array, ...], ...]


def compare_schedules(seeds: range) -> tuple[Counter[str], list[Difference]]:
    """One schedule for each seed: counts by outcome, and those after which TVM computes something else."""
    counts: Counter[str] = Counter()
    made: dict[str, Scheduled] = {}
    for seed in seeds:
        scheduled = try_schedule(seed)
        if scheduled is None:
            counts["schedules without a step, or of a program that faults"] += 1
        else:
            made[f"s{seed}"] = scheduled
    jobs = [Job(f"{key}_old", s.program.text, s.program.runs) for key, s in made.items()]
    jobs += [Job(f"{key}_new", s.text, s.runs) for key, s in made.items()]
    runner = Runner()
    try:
        found = runner.run(jobs)
        verdicts = {key: judged(s, found[f"{key}_old"], found[f"{key}_new"]) for key, s in made.items()}
        # Of two texts that mean the same TVM's simplifier may make two things.
        doubted = {key for key, (_, difference) in verdicts.items() if difference is not None}
        jobs = [
            replace(job, function=without_wraps(job.function)) for job in jobs if job.key.rpartition("_")[0] in doubted
        ]
        plain = runner.run(jobs, plain=True)
    finally:
        runner.close()
        runner.errors.close()
    for key in doubted:
        if judged(made[key], plain[f"{key}_old"], plain[f"{key}_new"]) == (COMPARED, None):
            verdicts[key] = SIMPLIFIED, None
        elif any(d.severity is Severity.WARNING for d in check_upstream(made[key].func)):
            verdicts[key] = "schedules with a form that TVM takes otherwise, of which LP133 warns", None
    return counts + Counter(state for state, _ in verdicts.values()), [d for _, d in verdicts.values() if d is not None]


def judged(scheduled: Scheduled, old: Outcome, new: Outcome) -> tuple[str, Difference | None]:
    """The state of one schedule, and the difference that it makes, if any."""
    if old.outputs is None:
        return f"schedules whose program TVM refuses: {failure_kind(old.reason)}", None
    about = f"after {'; '.join(scheduled.steps)}\n{scheduled.text}"
    if new.outputs is None:
        return f"schedules that TVM refuses: {failure_kind(new.reason)}", (
            Difference("a schedule traps in TVM", about, scheduled.program) if new.died else None
        )
    for before, after in zip(old.outputs, new.outputs, strict=True):
        for cell, wanted, packed in zip(scheduled.program.parameters, before, after, strict=True):
            array = unpacked(scheduled.func, cell.name, packed)
            if array.shape != wanted.shape or not same_values(wanted, array).all():
                where = (
                    ""
                    if array.shape != wanted.shape
                    else f"{list(map(int, np.argwhere(~same_values(wanted, array))[0]))}"
                )
                return COMPARED, Difference(
                    "a schedule changes the result", f"{cell.name}{where} {about}", scheduled.program
                )
    return COMPARED, None


def try_schedule(seed: int) -> Scheduled | None:
    """A random program with random accepted steps; None if none was accepted or the program faults on its inputs."""
    rng = Random(seed)
    program = operator(rng, seed) if rng.random() < 0.4 else random_program(seed, DOCUMENTED)
    ours = interpret(program.text, program.runs)
    runs = tuple(run for run, output in zip(program.runs, ours.outputs, strict=False) if output is not None)
    if ours.func is None or not runs:
        return None
    schedule = Schedule(ours.func, allowed=_BIT_FOR_BIT)
    steps = tuple(_accepted(schedule, rng))
    # TVM generates no code for undefined values, and its assumptions compare no buffer with one.
    if any(isinstance(node, Undef) for node in walk(schedule.func.body)):
        steps += tuple(_applied(schedule, (RemoveAssume(), RemoveStoreUndef())))
    if not steps:
        return None
    func = schedule.func
    if any(prod(int(evaluate(extent, {})) for extent in buffer.shape) > _MOST_CELLS for buffer in func.buffers):
        return None  # a layout that pads axes of its own padding is never run
    packed = tuple(
        tuple(_packed(func, c.name, a) for c, a in zip(program.parameters, run, strict=True)) for run in runs
    )
    program = Program(seed, program.text, program.parameters, runs, program.features)
    return Scheduled(program, steps, func, schedule.script(), packed)


def operator(rng: Random, seed: int) -> Program:
    """One of the operators of the tests, on random arrays."""
    text = small_text(rng.choice([name for name in CONCRETE if not name.startswith(("exp", "softmax"))]))
    func = loads(text)
    cells = tuple(Cell(b.name, str(b.dtype), _shape(b)) for b in func.buffers)
    run = tuple(random_array(c.dtype, c.shape, rng, 0.05) for c in cells)
    return Program(seed, text, cells, (run,), frozenset())


def _accepted(schedule: Schedule, rng: Random) -> Iterator[str]:
    for _ in range(rng.randint(2, ATTEMPTS)):
        step = _random_pass(schedule.func, rng)
        if step is None:
            continue
        try:
            schedule.attempt(step)
        except LayoutproofError:
            continue
        yield str(step)
    if rng.random() < 0.15 and schedule.steps:
        yield from _applied(schedule, LOWERING)


def _applied(schedule: Schedule, passes: Sequence[Pass]) -> Iterator[str]:
    """Passes one after the other, until one is refused."""
    for each in passes:
        try:
            schedule.attempt(each)
        except LayoutproofError:
            return
        yield str(each)


def _packed(func: PrimFunc, name: str, array: Array) -> Array:
    layout = runtime_layouts(func).get(name)
    return array if layout is None else Packer(layout, _buffer(func, name).dtype).pack(array, {})


def unpacked(func: PrimFunc, name: str, array: Array) -> Array:
    """An array of a parameter in its logical layout."""
    layout = runtime_layouts(func).get(name)
    return array if layout is None else Packer(layout, _buffer(func, name).dtype).unpack(array, {})


def _buffer(func: PrimFunc, name: str) -> Buffer:
    return next(b for b in func.buffers if b.name == name)


def _shape(buffer: Buffer) -> tuple[int, ...]:
    return tuple(extent.value for extent in buffer.shape if isinstance(extent, IntImm))


def _places(node: Node, loops: tuple[For, ...] = ()) -> Iterator[tuple[Block, tuple[For, ...]]]:
    """The blocks with the loops around each."""
    if isinstance(node, Block) and not node.is_root:
        yield node, loops
    inside = (*loops, node) if isinstance(node, For) else loops
    for child in children(node):
        if isinstance(child, Stmt):
            yield from _places(child, inside)


def _random_pass(func: PrimFunc, rng: Random) -> Pass | None:
    """A pass with arguments that mostly make sense; None where the program has no place for it."""
    places = [place for place in _places(func.body) if place[1]]
    kind = rng.choice(KINDS)
    nodes = list(walk(func.body))
    allocated = [n.buffer.name for n in nodes if isinstance(n, Allocate)]
    allocated += [b.name for n in nodes if isinstance(n, Block) for b in n.alloc_buffers]
    buffers = [*(b.name for b in func.buffers), *allocated]
    given: dict[str, Any] = {}
    if kind == "transform_layout":
        buffer = rng.choice(func.buffers)
        pad = rng.choice([None, 0, 0, 1, "T.undef()"])
        return PASSES[kind].from_arguments(
            {"block": "root", "buffer": buffer.name, "index_map": _map(rng, buffer.rank), "pad_value": pad}
        )
    names = {f.name for f in PASSES[kind].options()}
    if names and not places:
        return None
    if not names:
        return PASSES[kind].from_arguments({})
    block, loops = rng.choice(places)
    serial = [loop for loop in loops if loop.kind is ForKind.SERIAL] or list(loops)
    given = {
        "block": block.name,
        "buffer": rng.choice(buffers),
        "loop": rng.choice(serial).var.name,
        "scope": "local",
        "at": rng.randint(1, 3),
    }
    given["factors"] = [None, rng.choice([2, 3, 4])] if rng.random() < 0.7 else [rng.choice([2, 3]), None]
    given["loops"] = _loops(kind, loops, rng)
    given["expand"] = rng.random() < 0.5
    given["padding"] = [rng.choice([1, 2, 3, 4]) for _ in block.iter_vars]
    if kind == "transform_block_layout":
        given["index_map"] = _map(rng, len(block.iter_vars)) if block.iter_vars else "lambda: []"
    return PASSES[kind].from_arguments({name: value for name, value in given.items() if name in names})


def _map(rng: Random, rank: int) -> str:
    """A random map without axis separators, which TVM's texts of buffers have no more."""
    return random_map(rng, rank).replace("AXIS_SEPARATOR, ", "")


def _loops(kind: str, loops: Sequence[For], rng: Random) -> list[str]:
    names = [loop.var.name for loop in loops]
    if kind == "fuse":
        start = rng.randrange(len(names))
        return names[start : start + rng.choice([2, 2, 3])]
    rng.shuffle(names)
    return names
