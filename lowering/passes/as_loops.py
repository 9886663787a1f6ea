"""Rewrites of kernels as rewrites of programs with parallel loops, which is what thread axes mean: the checker is asked
about these.

What that leaves out is asked beside it: races in memory of the grid without a barrier between, and joins of floats in
an order that is not fixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from layoutproof.ir.expr import Expr, IntImm, Var, widen
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import Kept, PrimFunc
from layoutproof.ir.rewrite import CellMap, InstanceMap, Rewrite
from layoutproof.ir.stmt import NOTHING, Allocate, Block, For
from layoutproof.ir.threads.axes import has_threads
from layoutproof.ir.threads.crosswise import NONE, not_begun
from layoutproof.ir.threads.sequential import Barriers, NoSequence, Sequential, sequential
from layoutproof.ir.visit import loops_of_stores, substitute, walk
from layoutproof.verify.faults.facts import STRUCTURE
from layoutproof.verify.program.questions import Because
from layoutproof.verify.values.fast_math import FastMath, FastMathSet, names_of
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict

_ORDER: Mapping[BinaryOp, FastMathSet] = {
    BinaryOp.ADD: frozenset({FastMath.REASSOC, FastMath.NSZ}),
    BinaryOp.MUL: frozenset({FastMath.REASSOC, FastMath.NSZ}),
    BinaryOp.MIN: frozenset({FastMath.NNAN, FastMath.NSZ}),
    BinaryOp.MAX: frozenset({FastMath.NNAN, FastMath.NSZ}),
}
"""What it takes for a result to be the same in every order of threads: sums of floats differ by rounding, and which NaN
or zero a minimum yields depends on the order."""

_FINITE: FastMathSet = frozenset({FastMath.NINF})

_EMPTY = "a reduction over threads may have nothing to join, where TVM stores what it starts from, and loops do not"

_FORMS: Kept[Sequential | NoSequence] = Kept(16)


def forms_of(old: PrimFunc, new: PrimFunc) -> tuple[Sequential | NoSequence, Sequential | NoSequence]:
    """Two functions as parallel loops. Where the new one has no barriers, they are taken to stand where TVM puts them
    if it has blocks, which are lowered first, or if the old one is taken so; what came of plain loops has to have all.
    """
    before, after = _form(old, Barriers.IMPLIED), _form(new, Barriers.IMPLIED)
    implied = isinstance(before, Sequential) and before.implied
    if isinstance(after, Sequential) and after.implied and not (_has_blocks(new) or implied):
        return before, _form(new, Barriers.AS_WRITTEN)
    return before, after


def own_forms(old: PrimFunc, new: PrimFunc) -> tuple[Sequential | NoSequence, Sequential | NoSequence]:
    """Two functions as parallel loops, each by itself: without blocks a kernel has the barriers of its text."""
    before, after = (_in_one_order(func, _form(func, Barriers.OF_BLOCKS)) for func in (old, new))
    return before, after


def _in_one_order(func: PrimFunc, form: Sequential | NoSequence) -> Sequential | NoSequence:
    """A form of which the order of threads is no matter, but for the rounding of floats."""
    if isinstance(form, Sequential) and form.tuples:
        return NoSequence("threads join several values at once, in an order that is not fixed", func.body)
    return form


def _form(func: PrimFunc, barriers: Barriers) -> Sequential | NoSequence:
    return _FORMS.get(func, (barriers,), lambda: sequential(func, barriers))


def _has_blocks(func: PrimFunc) -> bool:
    return any(isinstance(node, Block) and not node.is_root for node in walk(func.body))


def fast_math_needed(forms: Iterable[Sequential]) -> FastMathSet:
    """The fast-math assumptions under which it makes no difference how threads join floats."""
    needed: FastMathSet = frozenset()
    for form in forms:
        needed = needed.union(*(_ORDER[op] for op in form.crosswise), _FINITE if form.bounded else ())
    return needed


def not_understood(obstacle: NoSequence) -> Verdict:
    """That a kernel has no form as parallel loops, so that nothing is known of it."""
    claim = Claim(ClaimKind.OTHER, "the threads of the kernel are independent between barriers", about=("threads",))
    place = f" ({obstacle.stmt.span})" if obstacle.stmt.span is not None else ""
    return Verdict(Status.UNKNOWN, claim, STRUCTURE, (), f"{obstacle.reason}{place}")


def no_witness() -> Verdict:
    """That the witness is not one over the loops of a kernel's form."""
    claim = Claim(ClaimKind.WITNESS, "the witness speaks of the loops around the stores of a kernel", about=("kernel",))
    return Verdict(
        Status.UNKNOWN, claim, STRUCTURE, (), "it speaks of others, or the kernel joins values by intrinsics"
    )


def check_apart(form: Sequential) -> Iterator[Verdict]:
    """That threads do not disturb one another in memory of the grid where no barrier is between, nor copies that are
    under way.
    """
    yield from check_part(form.apart)
    yield from check_part(form.under_way)
    yield from check_overlap(form)


def check_overlap(form: Sequential) -> Iterator[Verdict]:
    """That threads do not meet where no barrier is between, should parameters overlap: nothing where they may not."""
    func = form.func
    if (form.apart is not None or form.under_way is not None or form.overlaps) and may_overlap(func):
        claim = Claim(ClaimKind.NO_RACE, "threads are independent where no barrier is between", about=("overlap",))
        reason = "parameters may overlap: the function does not assume noalias"
        yield Verdict(Status.UNKNOWN, claim, STRUCTURE, (), reason, because=frozenset((Because.OVERLAP,)))


def may_overlap(func: PrimFunc) -> bool:
    """Whether two parameters of a function may be one memory."""
    return not func.noalias and len(func.buffers) > 1


def check_domains(func: PrimFunc, where: Expr | None, called_as: PrimFunc | None = None) -> Iterator[Verdict]:
    """That block variables in kernels stay in their domains, of which parallel loops say nothing; no verdict where that
    is proved. Two loops that are bound to one axis have an index each here, so nothing is refuted.
    """
    from layoutproof.verify.faults.facts import Facts
    from layoutproof.verify.faults.no_faults import prove_bindings

    if has_threads(func.body):
        for verdict in prove_bindings(Facts.of(func, where, called_as)):
            if verdict.status is not Status.PROVED:
                yield replace(verdict, status=Status.UNKNOWN, counterexample=None)


def check_part(part: PrimFunc | None) -> Iterator[Verdict]:
    """That a part of a kernel has no race, which stands for what its form leaves out."""
    from layoutproof.verify.faults.facts import Facts
    from layoutproof.verify.faults.races import prove_race_free

    if part is not None:
        yield from prove_race_free(Facts.of(part.with_parameters_apart()))


def check_begun(func: PrimFunc, where: Expr | None, called_as: PrimFunc | None = None) -> Iterator[Verdict]:
    """That every reduction of a block over threads has a part, and is so started in loops, too: TVM stores its start
    also where there is nothing to join. No verdict where that is proved, and nothing is refuted.
    """
    from layoutproof.verify.faults.facts import Facts, values_text, visible

    missed = not_begun(func.body) if has_threads(func.body) else NOTHING
    if missed == NOTHING:
        return
    facts = Facts.of(func.with_body(Allocate(NONE, missed)), where, called_as)
    claim = Claim(ClaimKind.OTHER, "every reduction over threads has a part", about=("reduction",))
    for access in facts.program.accesses:
        found = facts.search(access.domain)
        if access.buffer == NONE and not found.is_empty:
            at = "" if found.point is None else values_text(visible(access.domain, found.point, facts.program))
            yield Verdict(Status.UNKNOWN, claim, found.engine, (), f"{_EMPTY}: {at}" if at else _EMPTY)


def check_order(forms: Iterable[Sequential], allowed: FastMathSet) -> Iterator[Verdict]:
    """That the order in which threads join floats makes no difference, under what is allowed."""
    needed = fast_math_needed(forms)
    if needed:
        claim = Claim(ClaimKind.OTHER, "threads join floats in an order that is not fixed", about=("join-order",))
        if needed <= allowed:
            yield Verdict(Status.PROVED, claim, STRUCTURE, names_of(needed))
        else:
            missing = ", ".join(sorted(needed - allowed))
            yield Verdict(Status.UNKNOWN, claim, STRUCTURE, (), f"that takes {missing}")


def has_kernel(rewrite: Rewrite) -> bool:
    """Whether one of the two programs has thread axes."""
    return has_threads(rewrite.old.body) or has_threads(rewrite.new.body)


def as_loops(rewrite: Rewrite) -> Rewrite:
    """A rewrite of kernels between their forms as parallel loops; the rewrite itself where there is none of them, or
    where a kernel has no such form.
    """
    if not has_kernel(rewrite):
        return rewrite
    before, after = own_forms(rewrite.old, rewrite.new)
    if isinstance(before, NoSequence) or isinstance(after, NoSequence):
        return rewrite
    formed = try_in_forms(rewrite, before, after)
    return rewrite if formed is None else formed


def try_in_forms(rewrite: Rewrite, before: Sequential, after: Sequential) -> Rewrite | None:
    """A rewrite between the forms of its programs, with the witness over their loops; None where a form has other
    stores than its program, or the witness speaks of other loops.
    """
    old, new = _Side.of(rewrite.old, before), _Side.of(rewrite.new, after)
    if not all(_speaks_of(claim, old, new) for claim in rewrite.witness.instances):
        return None
    instances = tuple(_instance(claim, old, new) for claim in rewrite.witness.instances)
    cells = tuple(_cells(rewrite, before, after))
    return Rewrite(before.func, after.func, replace(rewrite.witness, instances=instances, cells=cells))


@dataclass(frozen=True, slots=True)
class _Side:
    """The loops around each store of a function, and around the same store in its form."""

    tags: Mapping[Var, str]
    written: Sequence[tuple[For, ...]]
    formed: Sequence[tuple[For, ...]]

    @staticmethod
    def of(func: PrimFunc, form: Sequential) -> _Side:
        return _Side(form.axes, loops_of_stores(func.body), loops_of_stores(form.func.body))

    def axes(self, store: int) -> dict[str, Var]:
        """The thread loops around a store of the form, by tag."""
        return {self.tags[loop.var]: loop.var for loop in self.formed[store] if loop.var in self.tags}


def _speaks_of(claim: InstanceMap, old: _Side, new: _Side) -> bool:
    if any(len(side.written) != len(side.formed) for side in (old, new)) or claim.new_store >= len(new.written):
        return False
    if claim.old_store is None or claim.instances is None:
        return True
    if not 0 <= claim.old_store < len(old.written):
        return False
    inputs = len(claim.instances.inputs) - len(new.written[claim.new_store])
    outputs = claim.instances.rank - len(old.written[claim.old_store])
    return inputs in (0, 1) and outputs in (0, 1)  # the last one may be a lane


def _instance(claim: InstanceMap, old: _Side, new: _Side) -> InstanceMap:
    if claim.old_store is None or claim.instances is None:
        return claim
    formed = tuple(loop.var for loop in new.formed[claim.new_store])
    axes = new.axes(claim.new_store)
    # The loops of the kernel as it is written, over those of its form.
    written, before = new.written[claim.new_store], old.written[claim.old_store]
    inputs, lanes = claim.instances.inputs[: len(written)], claim.instances.inputs[len(written) :]
    values = {v: _in_form(loop, axes, formed) for v, loop in zip(inputs, written, strict=True)}
    outputs = [substitute(output, values) for output in claim.instances.outputs]
    found = dict(zip((loop.var for loop in before), outputs[: len(before)], strict=True))
    threads: dict[str, Expr] = {}
    for loop in before:
        if loop.thread is not None and loop.thread not in threads:
            index = found[loop.var]
            threads[loop.thread] = index if loop.start == IntImm(0, loop.start.dtype) else index - loop.start
    result: list[Expr] = []
    for loop in old.formed[claim.old_store]:
        tag = old.tags.get(loop.var)
        if tag is None:
            result.append(found.get(loop.var, loop.start))
            continue
        index = threads.get(tag, axes.get(tag, loop.start))
        result.append(widen(index, loop.var.dtype))
    where = None if claim.where is None else substitute(claim.where, values)
    result += outputs[len(before) :]
    return replace(claim, instances=IndexMap((*formed, *lanes), tuple(result)), where=where)


def _in_form(loop: For, axes: Mapping[str, Var], formed: Sequence[Var]) -> Expr:
    """The variable of a loop over the loops of the form; where it makes no difference, its start."""
    if loop.thread is None:
        return loop.var if loop.var in formed else loop.start
    if loop.thread not in axes:
        return loop.start
    index = widen(axes[loop.thread], loop.var.dtype)
    return index if loop.start == IntImm(0, loop.start.dtype) else index + loop.start


def _cells(rewrite: Rewrite, before: Sequential, after: Sequential) -> Iterator[CellMap]:
    """The cell maps of memory of which there is one; of the copies that threads have, dataflow finds the values."""
    for cells in rewrite.witness.cells:
        if cells.old_data not in before.copies and cells.new_data not in after.copies:
            yield cells
