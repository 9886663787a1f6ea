"""The claim of a cell as programs: the operator under its layout and policy, with guards, and the steps that drop them.

Everything up to the guarded program is a proved schedule. Each later step is one claim: the guards of a block go, or
the stage that fills padding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from layoutproof.ir.expr import Expr
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import NOTHING, Block, For, Seq, Stmt, seq
from layoutproof.ir.visit import map_children, stores_in, walk
from layoutproof.lowering.layout.pad_value import read_pad_value
from layoutproof.lowering.loops.nest import GuardKind, guard_sites
from layoutproof.lowering.loops.overcompute import RemoveBranchingThroughOvercompute
from layoutproof.lowering.passes.find import find_buffer
from layoutproof.lowering.passes.witness_maps import rewrite_of
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.studies.cells import Cell, PadText, pad_value
from layoutproof.studies.instruments import MARK, with_fresh_loads, with_marks, with_masked_loads
from layoutproof.studies.layouts import Layout, layout_named
from layoutproof.studies.operators import Operator
from layoutproof.studies.policies import Holds, Loads, Policy, policy_named
from layoutproof.verify.values.fast_math import FastMathSet

UNDEF = "T.undef()"
FILL = "buffer_{}_padding"
ROWS_LAYOUT = Layout("rows", "blocks of 4 along rows", {"r": ("x//4", "x%4")})


@dataclass(frozen=True, slots=True)
class Claim:
    """One step of a cell: its name in texts, and the rewrite of a program, to be proposed when it is asked. `block` is
    that whose guards go, None for a stage that fills padding.
    """

    name: str
    propose: Callable[[PrimFunc], Rewrite]
    block: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """The guarded program of a cell and the steps that should follow. `schedule` has the steps that led to it."""

    logical: PrimFunc
    schedule: Schedule
    guarded: PrimFunc
    claims: tuple[Claim, ...]


def question_of(operator: Operator, cell: Cell, allowed: FastMathSet) -> Question:
    """The programs of a cell. Raises LayoutproofError where the operator cannot be laid out so."""
    maker = _Maker(operator, cell, layout_named(cell.layout), policy_named(cell.policy))
    return maker.question(allowed)


@dataclass(frozen=True, slots=True)
class _Maker:
    operator: Operator
    cell: Cell
    layout: Layout
    policy: Policy

    def question(self, allowed: FastMathSet) -> Question:
        program = self.operator.program(self.cell.dtype, self.operator.sizes(self.cell.shape))
        if self.policy.loads is Loads.MARKED:
            program = with_marks(program)
        schedule = Schedule(program, allowed=allowed)
        if self.policy.loads is Loads.COPIED:
            self.copy_inputs(schedule)
        self.lay_out(schedule)
        guarded = self.instrumented(schedule.func)
        return Question(program, schedule, guarded, tuple(self.claims(guarded)))

    # --- layouts

    def copy_inputs(self, schedule: Schedule) -> None:
        """Copy inputs before the first use, for all blocks, and outputs after the last."""
        for name in self.operator.inputs:
            schedule.cache_read("root", name, "local")
        for name in self.operator.padded_outputs:
            schedule.cache_write(self.blocks_of(schedule.func, name)[-1], name, "local")

    def is_copied(self, name: str) -> bool:
        """Whether the operator works on a copy of a parameter."""
        copied = (*self.operator.inputs, *self.operator.padded_outputs)
        return self.policy.loads is Loads.COPIED and name in copied

    def blocks_of(self, func: PrimFunc, buffer: str) -> list[str]:
        """The operator's blocks that read or write a buffer, in the order of the text."""
        found = []
        for node in walk(func.body):
            if isinstance(node, Block) and node.name in self.operator.blocks:
                names = {n.buffer.name for n in walk(node) if hasattr(n, "buffer") and hasattr(n, "indices")}
                if buffer in names:
                    found.append(node.name)
        return found

    def lay_out(self, schedule: Schedule) -> None:
        for name, letters in self.operator.buffers.items():
            self.store(schedule, name, letters, self.contract(name, letters))
            if self.policy.loads is Loads.MARKED:
                contract = 1 if name in self.operator.inputs else UNDEF
                self.store(schedule, f"{name}{MARK}", letters, contract)
        for block, letters in self.operator.blocks.items():
            text = self.layout.loops_text(letters)
            if text is not None:
                schedule.transform_block_layout(block, text)
            rows = self.rows_text(letters)
            if rows is not None:
                schedule.transform_block_layout(block, rows)

    def store(self, schedule: Schedule, name: str, letters: str, contract: PadText) -> None:
        """Store a buffer, or its copy, by the layout, and by rows where the policy has a contract for them."""
        text = self.layout.map_text(letters)
        target = f"{name}_local" if self.is_copied(name) else name
        blocks = self.blocks_of(schedule.func, target)
        if not blocks:
            return
        if text is not None:
            schedule.transform_layout(blocks[0], target, text, pad_value=contract)
        rows = self.rows_text(letters)
        if rows is not None:
            schedule.transform_layout(blocks[0], target, rows, pad_value=UNDEF)

    def rows_text(self, letters: str) -> str | None:
        """The map that stores rows in blocks after the other axes were laid out, where the policy asks for it."""
        if self.policy.rows is None or "r" in self.layout.axes or "r" not in letters:
            return None
        now = "".join(letter if letter == "r" else "." * self.width(letter) for letter in letters)
        return ROWS_LAYOUT.map_text(now)

    def width(self, letter: str) -> int:
        """How many axes the layout makes of one."""
        return len([text for text in self.layout.axes.get(letter, ("x",)) if text != "SEP"])

    def contract(self, name: str, letters: str) -> PadText:
        """What the padding of a buffer holds, as a schedule takes it."""
        operator, policy = self.operator, self.policy
        if name in operator.temporaries or name in operator.anything:
            return None if name in operator.anything and policy.reads is Holds.NOTHING else UNDEF
        if not set(letters) & set("nh"):
            return UNDEF if policy.writes is not Holds.NOTHING else None
        holds = policy.reads if name in operator.inputs else policy.writes
        if self.is_copied(name) and name in operator.outputs:
            return UNDEF
        if holds is Holds.VALUE:
            return self.value()
        return UNDEF if holds is Holds.ANYTHING else None

    def value(self) -> PadText:
        """The pad value of the cell, in the type of the buffer."""
        return pad_value(self.policy.value or self.cell.value, self.cell.dtype)

    # --- loads

    def instrumented(self, func: PrimFunc) -> PrimFunc:
        read = (*self.operator.inputs,)
        for block in self.guarded_blocks(func):
            if self.policy.loads is Loads.MASKED:
                func = with_masked_loads(func, block, read, {name: self.passing(func, name) for name in read})
            elif self.policy.loads is Loads.FRESH:
                func = with_fresh_loads(func, block, read)
        return func

    def passing(self, func: PrimFunc, name: str) -> Expr:
        """The value that passes through a masked load; of operands that may hold anything, zero."""
        given = "0" if name in self.operator.anything else self.cell.value
        contract = read_pad_value(pad_value(given, self.cell.dtype), find_buffer(func, name), (), ())
        assert contract is not None, "a masked load has a value that the type has"
        return contract.value

    def guarded_blocks(self, func: PrimFunc) -> list[str]:
        return [block for block in self.operator.blocks if _guards(func, block)]

    # --- claims

    def claims(self, func: PrimFunc) -> Iterator[Claim]:
        for block in self.guarded_blocks(func):
            drop = RemoveBranchingThroughOvercompute(block, _guards(func, block))
            yield Claim(f"guard of {block}", drop.propose, block)
        if not self.policy.filled:
            for name in self.operator.padded_outputs:
                block = FILL.format(name)
                if any(isinstance(n, Block) and n.name == block for n in walk(func.body)):
                    yield Claim(f"fill of {name}", partial(without_block, name=block))


def _guards(func: PrimFunc, block: str) -> tuple[int, ...]:
    """The guards of a block by number, choices of values aside."""
    return tuple(n for n, site in enumerate(guard_sites(func, block)) if site.kind is not GuardKind.VALUE)


def without_block(func: PrimFunc, name: str) -> Rewrite:
    """The function without the loops around a block and the block: the other stores stay as they are."""
    gone = {id(s) for node in walk(func.body) if isinstance(node, Block) and node.name == name for s in stores_in(node)}
    kept: list[int | None] = [number for number, store in enumerate(stores_in(func.body)) if id(store) not in gone]

    def visit(node: Stmt) -> Stmt:
        if _is_nest_of(node, name):
            return NOTHING
        if isinstance(node, Seq):
            return seq(*map(visit, node.body))
        return map_children(node, lambda child: visit(child) if isinstance(child, Stmt) else child)

    return rewrite_of(func, func.with_body(visit(func.body)), kept)


def _is_nest_of(node: Stmt, name: str) -> bool:
    while isinstance(node, For):
        node = node.body
    return isinstance(node, Block) and node.name == name
