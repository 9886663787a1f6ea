"""The search for a witness, which maps the instances of one program to those of the other, if all layouts are known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from layoutproof.ir.expr import Binary, Cast, Expr, IntImm, Var, binary, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import CellMap, InstanceMap, Rewrite, Witness
from layoutproof.ir.stmt import BufferStore, For
from layoutproof.ir.visit import free_variables, loops_of_stores, stores_in, walk
from layoutproof.lowering.compare.comparison import Found, Furthest, NoWitness, Question
from layoutproof.lowering.compare.instance_search import Search
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.flow.constant_parts import without_constants
from layoutproof.verify.flow.forwarded import forwarded_rewrite
from layoutproof.verify.flow.known_values import Knowledge
from layoutproof.verify.flow.models import NEW, RewriteModel
from layoutproof.verify.flow.simulate import OPERATIONS
from layoutproof.verify.isl.encode import NotQuasiAffine
from layoutproof.verify.isl.instance_sets import Link
from layoutproof.verify.isl.proposing import condition_on, functions_of
from layoutproof.verify.isl.space import BudgetExceeded
from layoutproof.verify.program.statement import NotModelled, Statement
from layoutproof.verify.values.float_indices import rewrite_in_integers


def instance_maps(search: Search) -> tuple[InstanceMap, ...]:
    """The instance map of every store of the new program in order; unmatched stores say so."""
    rewrite = search.rewrite_model.rewrite
    new_loops, old_loops = loops_of_stores(rewrite.new.body), loops_of_stores(rewrite.old.body)
    result: list[InstanceMap] = []
    for number, loops in enumerate(new_loops):
        claims = [
            claim
            for (mine, theirs), link in sorted(search.theta.items(), key=lambda item: item[0])
            if mine == number
            for claim in _claims(
                search, search.new.by_number[mine], search.old.by_number[theirs], link, loops, old_loops[theirs]
            )
        ]
        result += claims or [InstanceMap(number, None, None)]
    return tuple(result)


def _claims(
    search: Search, new: Statement, old: Statement, link: Link, loops: Sequence[For], old_loops: Sequence[For]
) -> Iterator[InstanceMap]:
    """One map for each piece of a function."""
    space = search.rewrite_model.encoder_of(new.dims).space
    names: dict[str, Expr] = {dim.var.name: dim.var for dim in new.dims}
    positions = {dim.var.name: k for k, dim in enumerate(old.dims)}
    mine, theirs = [dim for dim in new.dims if dim.lane][:1], [dim for dim in old.dims if dim.lane][:1]
    for piece in functions_of(link, space, names):
        # An init is inside the loops of its reduction, without a coordinate for them: it runs at their start.
        outputs = [
            piece.outputs[positions[loop.var.name]] if loop.var.name in positions else loop.start for loop in old_loops
        ]
        inputs = [loop.var for loop in loops]
        if mine or theirs:
            inputs += [dim.var for dim in mine]
            outputs += [piece.outputs[positions[dim.var.name]] for dim in theirs]
        where = condition_on(piece.where, search.new.domain(new), space, names)
        yield InstanceMap(new.number, old.number, IndexMap(tuple(inputs), tuple(outputs)), where)


# Programs that stand side by side, with indices that take integer sets long, may cost this part of what others may.
_LESS = 10


def find_witness(question: Question, operations: int = OPERATIONS) -> Found:
    """A witness for the question, whose layouts are all known. It is a claim: nothing was proved.

    `operations` bounds the cost of integer sets. Raises NoWitness, which says how far the search came.
    """
    try:
        return _found(question, operations)
    except NoWitness as problem:
        if problem.out_of_budget:
            raise
        # What the checker looks through, too: constants in sums, tables of indices, and copies.
        found = _without_constants(question, operations)
        if found is not None:
            return found
        again = forwarded_rewrite(Rewrite(question.old, question.new, Witness(())))
        if again is None:
            raise
        try:
            return _found(replace(question, old=again.old, new=again.new), operations)
        except NoWitness:
            raise problem from None


def _without_constants(question: Question, operations: int) -> Found | None:
    """A witness by which what a sum gets besides what it sums has no counterpart; None if there is nothing like
    that.
    """
    try:
        model = search_of(question, operations).rewrite_model
        with model.workspace.limited():
            if not without_constants(model, Knowledge.of(model, model.after, model.new, NEW)):
                return None
        search = Search(model)
        search.run()
        return Found(_instances(search), question.cells)
    except (NoWitness, NotModelled, NotQuasiAffine, BudgetExceeded):
        return None


def _found(question: Question, operations: int) -> Found:
    try:
        slow = is_better_side_by_side(question.new, question.old)
        search = search_of(question, operations // _LESS if slow else operations)
        try:
            search.run()
        except NoWitness as problem:
            search = _guessed(search, problem)
        return Found(_instances(search), question.cells)
    except (NotModelled, NotQuasiAffine) as problem:
        return _in_order(question, f"integer sets cannot say one of the programs: {problem.reason}")
    except BudgetExceeded as problem:
        return _in_order(question, f"the search ran out of its budget: {problem}", out_of_budget=True)


def search_of(question: Question, operations: int = OPERATIONS) -> Search:
    """A search that has not begun, also for a question with unknown layouts. Raises NotModelled, NotQuasiAffine or
    BudgetExceeded.
    """
    witness = Witness((), (*question.cells, *_stand_ins(question)), question.unknown)
    skeleton = rewrite_in_integers(Rewrite(question.old, question.new, witness))
    old, new = Facts.of(skeleton.old, question.where), Facts.of(skeleton.new, question.where, question.old)
    rewrite_model = RewriteModel.of(skeleton, old, new, operations)
    names = {buffer.name: buffer.data.name for buffer in question.old.buffers}
    return Search(rewrite_model, frozenset(names[name] for name in question.unknown))


def _guessed(search: Search, problem: NoWitness) -> Search:
    """The search once more, pairing values of different forms; raises what ended the first one if that does not
    help.
    """
    again = Search(search.rewrite_model, guesses=True)
    try:
        again.run()
    except (NoWitness, NotModelled, NotQuasiAffine, BudgetExceeded):
        raise problem from None
    return again


def _instances(search: Search) -> tuple[InstanceMap, ...]:
    with search.rewrite_model.workspace.limited():
        return instance_maps(search)


def _stand_ins(question: Question) -> list[CellMap]:
    """Cell maps of the right ranks, without a meaning, for the parameters whose layouts are not known."""
    after = {buffer.data.name: buffer for buffer in question.new.buffers}
    result: list[CellMap] = []
    for buffer in question.old.buffers:
        if buffer.name in question.unknown:
            inputs = tuple(Var(f"v{k}", extent.dtype) for k, extent in enumerate(buffer.shape))
            outputs = tuple(const(0) for _ in after[buffer.data.name].shape)
            result.append(CellMap(buffer.data.name, buffer.data.name, IndexMap(inputs, outputs)))
    return result


# Programs that integer sets cannot say, or not within the budget


_QUOTIENTS = 4


def is_better_side_by_side(new: PrimFunc, old: PrimFunc) -> bool:
    """Whether indices are slow in integer sets, by an exclusive or or many quotients, and the programs have the same
    loops.
    """
    operators = [node.op for node in walk(new.body) if isinstance(node, Binary) and node.dtype.is_integer]
    quotients = sum(op in (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD) for op in operators)
    if BinaryOp.BITXOR not in operators and quotients < _QUOTIENTS:
        return False
    sizes = [
        [[(_number(loop.start), _number(loop.extent)) for loop in loops] for loops in loops_of_stores(func.body)]
        for func in (new, old)
    ]
    return sizes[0] == sizes[1]


def _number(bound: Expr) -> Expr | int:
    """A bound, the type of a constant left aside."""
    return bound.value if isinstance(bound, IntImm) else bound


def _in_order(question: Question, why: str, *, out_of_budget: bool = False) -> Found:
    """Stores and loops paired by their order: for programs without an exact model."""
    maps = in_order(question.old, question.new)
    lengths = [list(map(len, loops_of_stores(func.body))) for func in (question.new, question.old)]
    # Where the engines have spent their budget already, the checker is not asked about other loops.
    if maps is None or (out_of_budget and lengths[0] != lengths[1]):
        mine, theirs = map(len, lengths)
        counts = f"{mine} stores against {theirs}" if mine != theirs else "nests of different loops"
        reason = f"{why}; and the programs do not stand side by side: {counts}"
        raise NoWitness(Furthest(reason), out_of_budget=out_of_budget)
    return Found(maps, question.cells)


# Without a search: programs that do the same things in the same order, whatever their loops are. The n-th iteration of
# one nest is the n-th of the other, also where integer sets cannot say the programs, or a call's body is not known.


def in_order(old: PrimFunc, new: PrimFunc) -> tuple[InstanceMap, ...] | None:
    """The witness that pairs stores that look alike, by number if there are as many; None if some nest has no order of
    its own.
    """
    mine, theirs = loops_of_stores(new.body), loops_of_stores(old.body)
    origins = _origins(old, new)
    if origins is None:
        return None
    maps: list[InstanceMap] = []
    for number, origin in enumerate(origins):
        if origin is None:
            maps.append(InstanceMap(number, None, None))
            continue
        index_map = _iteration(mine[number], theirs[origin])
        if index_map is None:
            return None
        maps.append(InstanceMap(number, origin, index_map))
    return tuple(maps)


def unmatched(new: PrimFunc) -> tuple[InstanceMap, ...]:
    """The witness by which nothing corresponds: the checker then says which cells differ, for runs to look at."""
    return tuple(InstanceMap(number, None, None) for number, _ in enumerate(stores_in(new.body)))


def _origins(old: PrimFunc, new: PrimFunc) -> list[int | None] | None:
    """The store of the old program for each of the new one; None if that is not clear."""
    mine, theirs = list(stores_in(new.body)), list(stores_in(old.body))
    if len(mine) == len(theirs):
        return list(range(len(mine)))
    alike: dict[object, list[int]] = defaultdict(list)
    for number, store in enumerate(theirs):
        alike[_look(store)].append(number)
    found: list[int | None] = []
    counts: dict[object, int] = defaultdict(int)
    for store in mine:
        look = _look(store)
        among = alike.get(look, [])
        # A stage cut in several has one store for all of them; of several stages, each has its own.
        found.append(None if not among else among[0] if len(among) == 1 else among[min(counts[look], len(among) - 1)])
        counts[look] += 1
    if any(len(alike[look]) > 1 and counts[look] != len(alike[look]) for look in alike):
        return None
    return found


def _look(store: BufferStore) -> object:
    """What stays of a store when loops change: its buffer, and the operations of its value."""
    kinds = tuple(node.op if isinstance(node, Binary) else type(node) for node in walk(store.value) if _is_float(node))
    return store.buffer.data.name, kinds


def _is_float(node: object) -> bool:
    return isinstance(node, Expr) and not (node.dtype.is_integer and isinstance(node, Var | IntImm | Binary | Cast))


def _iteration(mine: Sequence[For], theirs: Sequence[For]) -> IndexMap | None:
    """From the loops of one nest to those of another with as many iterations; the identity for as many loops."""
    inputs = tuple(loop.var for loop in mine)
    if len(mine) == len(theirs):
        return IndexMap(inputs, inputs)
    bound = {loop.var for loop in (*mine, *theirs)}
    if any(bound & set(free_variables(e)) for loop in (*mine, *theirs) for e in (loop.start, loop.extent)):
        return None
    number: Expr = const(0)
    for loop in mine:
        number = number * loop.extent + (loop.var - loop.start)
    outputs: list[Expr] = []
    for loop in reversed(theirs):
        outputs.append(loop.start + binary(BinaryOp.FLOORMOD, number, loop.extent))
        number = binary(BinaryOp.FLOORDIV, number, loop.extent)
    return IndexMap(inputs, tuple(reversed(outputs)))
