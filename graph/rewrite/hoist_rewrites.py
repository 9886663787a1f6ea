"""Layout rewrites before and after a computation in one function, hoisted into functions of their own.

A nest is hoisted where it is marked (`layout_rewrite_preproc`, `layout_rewrite_postproc`, with or without upstream's
`meta_schedule.` in front) or only copies a whole operand into a temporary, or a temporary into a whole result. The rest
keeps its layouts: it is marked as frozen. That the functions in a row are equivalent to the old one is proved.

Source: Relax's issue `relax-layout-transformation`, "Hoist Layout Rewrites Pass".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from layoutproof.graph import codes
from layoutproof.graph.model.graph import Call, Graph, Step, Value, frozen, is_whole, shape_of, signature_of
from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import Var
from layoutproof.ir.primfunc import AXIS_SEPARATORS, LAYOUT, LAYOUT_TRANSFORMATIONS, PrimFunc
from layoutproof.ir.stmt import Block, Seq, Stmt, seq
from layoutproof.ir.visit import fresh, loads_in, stores_in, walk
from layoutproof.ir.wellformed import require_wellformed
from layoutproof.lowering.passes.effects import data_read, data_written
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.passes.witness_maps import rewrite_of
from layoutproof.lowering.proof_cache.remembered import verdicts_of
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status, Verdict

PRIMITIVE = "hoist_layout_rewrites"


class Side(StrEnum):
    """Where a lifted nest stood."""

    BEFORE = "layout_rewrite_preproc"
    AFTER = "layout_rewrite_postproc"


@dataclass(frozen=True, slots=True)
class Lifted:
    """A layout rewrite as a function: `outer` is the array of the old function, `inner` that of the rest."""

    side: Side
    function: PrimFunc
    outer: str
    inner: str

    @property
    def is_before(self) -> bool:
        """Whether it stands before the rest, and makes an operand of it."""
        return self.side is Side.BEFORE


@dataclass(frozen=True, slots=True)
class Hoisted:
    """A function in parts: hoisted ones, and the rest, then frozen. `verdicts` are of all in a row."""

    function: PrimFunc
    rest: PrimFunc
    lifted: tuple[Lifted, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def status(self) -> Status:
        """The worst of the verdicts; proved where nothing was lifted."""
        return worst(verdict.status for verdict in self.verdicts) if self.verdicts else Status.PROVED


def hoist_layout_rewrites(func: PrimFunc) -> Hoisted:
    """The parts of a function; a rewrite that is not marked, and not proved to be one that can be lifted, stays where
    it is.

    Raises LayoutproofError where a graph cannot call the function.
    """
    signature_of(func)
    nests = _nests(func)
    found = [(nest, lift) for nest in nests if (lift := _lift(func, nest, nests)) is not None]
    # A temporary can become the array of one parameter alone.
    found = [each for k, each in enumerate(found) if all(each[1][2] != other[1][2] for other in found[:k])]
    parts = _parts(func, nests, found)
    if parts.status is Status.PROVED:
        return parts
    kept: list[_Found] = []
    for each in found:
        if _marked(each[0]) or _parts(func, nests, [*kept, each]).status is Status.PROVED:
            kept.append(each)
    return _parts(func, nests, kept)


def _parts(func: PrimFunc, nests: Sequence[Stmt], found: Sequence[_Found]) -> Hoisted:
    """The parts of a function some nests of which are lifted; something has to be left of it."""
    if not found or len(found) == len(nests):
        return Hoisted(func, func, (), ())
    lifted: list[Lifted] = []
    for nest, (side, outer, inner) in found:
        name = fresh(f"{func.name}_{outer.name}_layout", {each.function.name for each in lifted})
        arrays = (outer, inner) if side is Side.BEFORE else (inner, outer)
        lifted.append(Lifted(side, _function(func, name, arrays, (), [nest]), outer.name, inner.name))
    swapped = {outer: inner for _, (_, outer, inner) in found}
    taken = {id(nest) for nest, _ in found}
    rest = [nest for nest in nests if id(nest) not in taken]
    inner_arrays = set(swapped.values())
    kept = [buffer for buffer in _temporaries(func) if buffer not in inner_arrays]
    main = _function(func, func.name, [swapped.get(buffer, buffer) for buffer in func.buffers], kept, rest)
    order = [
        *(n for n, (side, _, _) in found if side is Side.BEFORE),
        *rest,
        *(n for n, (side, _, _) in found if side is Side.AFTER),
    ]
    return Hoisted(func, frozen(main), tuple(lifted), _proved(func, nests, order))


def _nests(func: PrimFunc) -> list[Stmt]:
    body = func.body.body if isinstance(func.body, Block) and func.body.is_root else func.body
    return list(body.body) if isinstance(body, Seq) else [body]


def _temporaries(func: PrimFunc) -> tuple[Buffer, ...]:
    return func.body.alloc_buffers if isinstance(func.body, Block) and func.body.is_root else ()


Lift = tuple[Side, Buffer, Buffer]
_Found = tuple[Stmt, Lift]


def _lift(func: PrimFunc, nest: Stmt, nests: Sequence[Stmt]) -> Lift | None:
    """On which side a nest can be lifted, the parameter and the temporary; None where it cannot."""
    stores, loads = list(stores_in(nest)), list(dict.fromkeys(load.buffer for load in loads_in(nest)))
    if len(stores) != 1 or len(loads) != 1 or not (isinstance(stores[0].value, BufferLoad) or _marked(nest)):
        return None
    others = [other for other in nests if other is not nest]
    source, target = loads[0], stores[0].buffer
    temporaries = [buffer for buffer in _temporaries(func) if is_whole(buffer)]
    if (
        source in func.buffers
        and target in temporaries
        and not _touched(others, source)
        and not _written(others, target)
    ):
        return Side.BEFORE, source, target
    if source in temporaries and target in func.buffers and not _touched(others, target) and _written(others, source):
        return Side.AFTER, target, source
    return None


def _marked(nest: Stmt) -> bool:
    marks = {side.value for side in Side}
    return any(
        key.rpartition(".")[2] in marks for node in walk(nest) if isinstance(node, Block) for key in node.annotations
    )


def _touched(nests: Iterable[Stmt], buffer: Buffer) -> bool:
    return any(buffer.data in data_read(nest) | data_written(nest) for nest in nests)


def _written(nests: Iterable[Stmt], buffer: Buffer) -> bool:
    return any(buffer.data in data_written(nest) for nest in nests)


def _function(
    func: PrimFunc, name: str, arrays: Sequence[Buffer], temporaries: Sequence[Buffer], nests: Sequence[Stmt]
) -> PrimFunc:
    """A function of some nests over some arrays."""
    handles = tuple(Var(f"{buffer.name}_handle", HANDLE) for buffer in arrays)
    body = seq(*nests)
    if temporaries:
        body = Block("root", (), body, alloc_buffers=tuple(temporaries))
    attrs, data = func.attrs, {buffer.data.name for buffer in (*arrays, *temporaries)}
    for key in (LAYOUT, LAYOUT_TRANSFORMATIONS, AXIS_SEPARATORS):
        stated = attrs.get(key)
        if isinstance(stated, Mapping):
            own = {name: value for name, value in stated.items() if name in data}
            attrs = attrs.with_value(key, own) if own else attrs.without(key)
    return require_wellformed(PrimFunc(name, handles, tuple(zip(handles, arrays, strict=True)), body, attrs))


def _proved(func: PrimFunc, nests: Sequence[Stmt], order: Sequence[Stmt]) -> tuple[Verdict, ...]:
    """Whether the nests in another order are equivalent to the function, and so are its parts one after the other."""
    starts, count = dict[int, int](), 0
    for nest in nests:
        starts[id(nest)] = count
        count += sum(1 for _ in stores_in(nest))
    origins = [starts[id(nest)] + k for nest in order for k, _ in enumerate(stores_in(nest))]
    together = seq(*order)
    body = replace(func.body, body=together) if isinstance(func.body, Block) else together
    return verdicts_of(rewrite_of(func, replace(func, body=body), origins), None, frozenset(), True, PRIMITIVE, {})


@dataclass(frozen=True, slots=True)
class Hoisting:
    """A graph with hoisted layout rewrites as calls, and the functions that were divided."""

    new: Graph
    made: tuple[Hoisted, ...]


def hoisting(graph: Graph) -> Hoisting:
    """Hoist the layout rewrites of a graph's functions. Raises IllegalTransform where that is not proved."""
    steps: list[Step] = []
    taken = {value.name for value in graph.values()}
    parts = {func: hoist_layout_rewrites(func) for func in graph.functions()}
    made = tuple(each for each in parts.values() if each.lifted)
    unproved = next((each for each in made if each.status is not Status.PROVED), None)
    if unproved is not None:
        raise _unproved(unproved)
    for step in graph.steps:
        steps += _split(step, parts[step.function], taken) if isinstance(step, Call) else [step]
    return Hoisting(replace(graph, steps=tuple(steps)), made)


def hoisted_graph(graph: Graph) -> Graph:
    """The graph with hoisted layout rewrites as calls. Raises IllegalTransform where that is not proved."""
    return hoisting(graph).new


def _split(call: Call, parts: Hoisted, taken: set[str]) -> list[Step]:
    if not parts.lifted:
        return [call]
    signature = signature_of(call.function)
    names = dict(zip((buffer.name for buffer in signature.operands), call.operands, strict=True))
    results = {buffer.name: value for buffer, value in zip(signature.results, call.results, strict=True)}
    before, after = list[Step](), list[Step]()
    made = dict(results)
    for part in parts.lifted:
        inner = next(buffer for buffer in part.function.buffers if buffer.name == part.inner)
        value = Value(fresh(f"{call.results[0].name}_{part.inner}", taken), shape_of(inner), inner.dtype)
        taken.add(value.name)
        if part.side is Side.BEFORE:
            before.append(Call((value,), part.function, (names.pop(part.outer),), call.span))
            names[part.inner] = value.name
        else:
            after.append(Call((made.pop(part.outer),), part.function, (value.name,), call.span))
            made[part.inner] = value
    rest = signature_of(parts.rest)
    operands = tuple(names[buffer.name] for buffer in rest.operands)
    values = tuple(made[buffer.name] for buffer in rest.results)
    return [*before, Call(values, parts.rest, operands, call.span), *after]


def _unproved(parts: Hoisted) -> LayoutproofError:
    claim = next(verdict for verdict in parts.verdicts if verdict.status is not Status.PROVED)
    message = f"the layout rewrites of {parts.function.name} cannot be lifted: {claim.claim} is {claim.status.value}"
    return IllegalTransform(Diagnostic(codes.NO_FLOW, message, parts.function.span), parts.verdicts)
