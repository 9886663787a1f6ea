"""What a run tells of its inputs by not faulting.

Only runs count in which the old program does not fault. Where that loads `A[idx[i]]`, element `i` of an input that nobody writes is an
index of A, and it is so in the new program too, which has the same input: there an access that the same element decides need not be
shown to be in bounds for every number that an integer can be. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import Expr, Select, Var, equal
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Stmt
from layoutproof.ir.subst import substitute
from layoutproof.ir.visit import free_variables, walk
from layoutproof.verify.abstraction import survey_of
from layoutproof.verify.facts import Facts
from layoutproof.verify.instances import AccessKind, Dim, Guard, Scene, Unknown, keeps_range
from layoutproof.verify.integers import at_least, below
from layoutproof.verify.search import Cover


@dataclass(frozen=True, slots=True)
class Content:
    """Wherever an instance of `scene` is, the element at `indices` of the parameter `buffer`, called `value`, satisfies `condition`: it is
    so from before the run until after it. Nothing in the scene depends on data.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    scene: Scene
    value: Var
    condition: Expr


def contents_of(rewrite: Rewrite, old: Facts) -> tuple[Content, ...]:
    """What every run of the old program that does not fault tells of parameters that neither program writes, and that keep their cells."""
    moved = {cells.old_data for cells in rewrite.witness.cells}
    kept = {_place(after) for after in rewrite.new.buffers}
    same = [before for before in rewrite.old.buffers if _place(before) in kept and before.data.name not in moved]
    return tuple(_contents(old, set(_unwritten(old, same))))


def _place(buffer: Buffer) -> tuple[object, ...]:
    return buffer.data, buffer.dtype, buffer.shape, buffer.strides, buffer.elem_offset


def _unwritten(facts: Facts, parameters: Sequence[Buffer]) -> Iterator[Buffer]:
    """Those that nothing writes, by any name."""
    survey = survey_of(facts.program.function)
    if not survey.all_change:
        yield from (buffer for buffer in parameters if buffer.data not in survey.changing)


def _contents(facts: Facts, steady: set[Buffer]) -> Iterator[Content]:
    chosen = set(_chosen(facts.program.function.body))
    for access in facts.program.accesses:
        if access.kind is AccessKind.ASSUME or id(access.node) in chosen:
            continue
        for index, extent in zip(access.indices, access.buffer.shape, strict=True):
            unknown = _decides(index, access.scene)
            load = _load(unknown, access.scene, facts, steady) if unknown is not None else None
            if unknown is None or load is None:
                continue
            dims = {dim.var for dim in access.scene.dims}
            if dims & set(free_variables(extent)):
                continue
            scene = replace(access.scene, unknowns=())
            if not _certainly_happens(access.scene):
                continue
            for condition in (at_least(index, 0), below(index, extent)):
                yield Content(load.buffer, load.indices, scene, unknown.var, condition)


def _chosen(body: Stmt) -> Iterator[int]:
    """What stands on a side of a choice that evaluates both: compilers load there or not, as they like."""
    for node in walk(body):
        if isinstance(node, Select):
            yield from (id(inner) for side in (node.then, node.otherwise) for inner in walk(side))


def _decides(index: Expr, scene: Scene) -> Unknown | None:
    """The one value from data that decides an index: no loop does, and nothing on the way wraps."""
    variables, dims = set(free_variables(index)), {dim.var for dim in scene.dims}
    found = [unknown for unknown in scene.unknowns if unknown.var in variables]
    plain = all(keeps_range(node) for node in walk(index) if isinstance(node, Expr) and node.dtype.is_integer)
    return found[0] if len(found) == 1 and plain and not variables & dims else None


def _load(unknown: Unknown, scene: Scene, facts: Facts, steady: set[Buffer]) -> BufferLoad | None:
    """The element of a parameter that nobody writes which an unknown is, at an index that no data decides."""
    match unknown.source:
        case BufferLoad(buffer=buffer, indices=indices) as load if buffer in steady:
            plain = {*(dim.var for dim in scene.dims), *facts.program.symbols}
            return load if all(v in plain for index in indices for v in free_variables(index)) else None
        case _:
            return None


def _certainly_happens(scene: Scene) -> bool:
    """Whether data decides nothing of which instances of a scene there are."""
    return not scene.depends_on_data()


def told(facts: Facts, contents: Sequence[Content]) -> Facts:
    """The facts of the new program with what is known of values from data said in every scene where such a value is used."""
    if not contents:
        return facts
    program = facts.program
    steady = set(_unwritten(facts, program.function.buffers))
    scenes: dict[tuple[object, ...], Scene] = {}

    def said(scene: Scene) -> Scene:
        key = (scene.dims, scene.guards, scene.unknowns)
        if key not in scenes:
            scenes[key] = replace(scene, guards=(*scene.guards, *_guards(facts, scene, steady, contents)))
        return replace(scene, guards=scenes[key].guards)

    accesses = tuple(replace(each, scene=said(each.scene)) for each in program.accesses)
    arithmetic = tuple(replace(each, scene=said(each.scene)) for each in program.arithmetic)
    return facts.of_program(replace(program, accesses=accesses, arithmetic=arithmetic))


def _guards(facts: Facts, scene: Scene, steady: set[Buffer], contents: Sequence[Content]) -> Iterator[Guard]:
    names = {dim.var.name for dim in scene.dims}
    for source in scene.unknowns:
        load = _load(source, scene, facts, steady)
        for content in contents if load is not None else ():
            # Symbols have one meaning in both programs, unless a loop has the name.
            if load is not None and content.buffer.data == load.buffer.data and names.isdisjoint(_symbols(content)):
                if _is_told(facts, scene, load, content):
                    yield Guard(substitute(content.condition, {content.value: source.var}))


def _symbols(content: Content) -> set[str]:
    """What a content speaks of besides its instances."""
    dims = content.scene.dims
    said = [content.condition, *content.indices, *(guard.condition for guard in content.scene.guards)]
    said += [bound for dim in dims for bound in (dim.start, dim.extent)]
    return {v.name for expr in said for v in free_variables(expr)} - {dim.var.name for dim in dims} - {content.value.name}


def _is_told(facts: Facts, scene: Scene, load: BufferLoad, content: Content) -> bool:
    """Whether each element that is loaded in a scene is one of those of which something is known."""
    taken = {dim.var.name for dim in scene.dims} | {each.var.name for each in scene.unknowns}
    names: dict[Var, Expr] = {}
    dims: list[Dim] = []
    for number, dim in enumerate(content.scene.dims):
        var = Var(_apart(f"{dim.var.name}'{number}", taken), dim.var.dtype)
        dims.append(Dim(var, substitute(dim.start, names), substitute(dim.extent, names), dim.kind, dim.lane))
        names[dim.var] = var
    there = tuple(substitute(guard.as_expr, names) for guard in content.scene.guards)
    same = tuple(equal(mine, substitute(theirs, names)) for mine, theirs in zip(load.indices, content.indices, strict=True))
    cover = Cover(replace(scene, dims=(*scene.dims, *dims)), (*there, *same))
    return facts.model.uncovered(scene, [cover]).is_empty


def _apart(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "'"
    return name
