"""The access relation of a block or a statement to a buffer, and its inverse.

The relation is an index over the enclosing loops; its inverse gives loops over the physical axes, with the old loops as
functions of them. Axes that share a loop are inverted together. If an access depends on more loops than axes (`A[i +
f]`), some loops are kept, reductions first, and the others follow from them: `i = p - f`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.expr import FALSE, Expr, IfThenElseExpr, Logical, Var, const, equal, is_zero, logical_and
from layoutproof.ir.index_map import IndexMap, retype
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, BufferStore, For, IfThenElse, Let, Stmt
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import children, free_variables, substitute, take_fresh
from layoutproof.lowering import codes
from layoutproof.lowering.layout.transform_layout import ROOT
from layoutproof.lowering.passes.effects import is_pure
from layoutproof.lowering.passes.find import find_block
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.maps.map_report import MapReport
from layoutproof.verify.verdict.verdict import Status


@dataclass(frozen=True, slots=True)
class Touch:
    """One load or store of the buffer in the text: its index over loops and symbols, and the enclosing statements.

    `conditional` says that a condition within the block decides whether it happens.
    """

    node: BufferLoad | BufferStore
    index: tuple[Expr, ...]
    path: tuple[Stmt, ...]
    conditional: bool


def find_touch(func: PrimFunc, block: str, buffer: Buffer) -> Touch:
    """The access of `buffer` that a block's loops are to follow: its stores, else its loads, which must all have one
    index.

    Of the function's own body, `root`, plain loops count before blocks among them, such as those that fill padding.
    Raises LayoutproofError if there is no access, if they differ, and if the index depends on data or on a variable
    that the block binds.
    """
    scope = None if block == ROOT else find_block(func, block)
    found = [t for t in _touches(func.body, buffer) if scope is None or any(s is scope for s in t.path)]
    if not found:
        place = "the function" if scope is None else f"block {block}"
        raise error(
            codes.NOT_IN_BLOCK,
            f"{place} neither reads nor writes {buffer.name}",
            scope.span if scope is not None else func.span,
        )
    if scope is None:
        plain = [t for t in found if not any(isinstance(s, Block) and not s.is_root for s in t.path)]
        found = plain if plain else found
    stores = [t for t in found if isinstance(t.node, BufferStore)]
    chosen = stores if stores else found
    _check_one_index(block, buffer, chosen)
    # In plain loops the innermost access has all loops around it that the others have, too.
    touch = max(chosen, key=lambda t: (not t.conditional, len(t.path)))
    _check_expressible(block, buffer, touch, scope)
    return touch


def _check_one_index(block: str, buffer: Buffer, touches: Sequence[Touch]) -> None:
    different = list(dict.fromkeys(t.index for t in touches))
    if len(different) > 1:
        shown = " and ".join(f"[{', '.join(expr_text(i) for i in index)}]" for index in different[:2])
        raise error(
            codes.NO_ORDER,
            f"block {block} touches {buffer.name} at {shown}: it has no one order to follow",
            touches[0].node.span,
        )


def _check_expressible(block: str, buffer: Buffer, touch: Touch, scope: Block | None) -> None:
    if not is_pure(*touch.index) or any(i.dtype.lanes > 1 for i in touch.index):
        raise error(
            codes.NO_ORDER, f"the index of {buffer.name} in block {block} depends on data or has lanes", touch.node.span
        )
    if scope is not None:
        start = next(n for n, s in enumerate(touch.path) if s is scope)
        inner = {s.var for s in touch.path[start:] if isinstance(s, For | Let)}
        used = [v.name for i in touch.index for v in free_variables(i) if v in inner]
        if used:
            message = (
                f"{buffer.name} is accessed along {used[0]}, which stands inside block {block}; only loops around it "
                "are reordered"
            )
            raise error(codes.NO_ORDER, message, touch.node.span)


def _touches(body: Stmt, buffer: Buffer) -> Iterator[Touch]:
    yield from _below(body, buffer, (), {}, False)


def _below(
    node: Node, buffer: Buffer, path: tuple[Stmt, ...], known: dict[Var, Expr], conditional: bool
) -> Iterator[Touch]:
    """The accesses below a node; `known` has block variables and lets over loops."""
    if isinstance(node, Buffer):
        return
    if isinstance(node, BufferLoad | BufferStore) and node.buffer == buffer:
        yield Touch(node, tuple(substitute(i, known) for i in node.indices), path, conditional)
    if isinstance(node, Block):
        for iter_var in node.iter_vars:
            known = {**known, iter_var.var: substitute(iter_var.binding, known)}
    elif isinstance(node, Let) and is_pure(node.value):
        known = {**known, node.var: substitute(node.value, known)}
    inner = (*path, node) if isinstance(node, Stmt) else path
    for child in _executed(node):
        lazy = isinstance(node, IfThenElse | IfThenElseExpr) and child is not node.condition
        late = isinstance(node, Logical) and child is node.rhs
        yield from _below(child, buffer, inner, known, conditional or (lazy and not _around_block(node)) or late)


def _executed(node: Node) -> Iterator[Node]:
    """The parts of a node that run: of a block, its init and body, without its regions."""
    if isinstance(node, Block):
        if node.init is not None:
            yield node.init
        yield node.body
        return
    yield from children(node)


def _around_block(node: Node) -> bool:
    """Whether a branch without an alternative is among the loops, where it is a guard."""
    return isinstance(node, IfThenElse) and node.otherwise is None


@dataclass(frozen=True, slots=True)
class Component:
    """Physical axes and the loops that say where on them an access is, with nothing else in common with other axes."""

    axes: tuple[int, ...]
    loops: tuple[For, ...]


@dataclass(frozen=True, slots=True)
class Turned:
    """An inverted component: `values` give the removed loops over `cells`, the variables of the axes, and the loops
    kept.

    `guards` hold exactly if an iteration accesses this cell; they are over the same variables.
    """

    component: Component
    kept: tuple[For, ...]
    values: Mapping[Var, Expr]
    guards: tuple[Expr, ...]


def components_of(index: Sequence[Expr], loops: Sequence[For]) -> list[Component]:
    """The axes that depend on loops, grouped by the loops that they share; loops in their order."""
    groups: list[tuple[set[int], set[Var]]] = []
    variables = {loop.var for loop in loops}
    for axis, expr in enumerate(index):
        used = set(free_variables(expr)) & variables
        if not used:
            continue
        touching = [g for g in groups if g[1] & used]
        merged = ({axis}.union(*(g[0] for g in touching)), used.union(*(g[1] for g in touching)))
        groups = [g for g in groups if not any(g is t for t in touching)] + [merged]
    return [Component(tuple(sorted(a)), tuple(loop for loop in loops if loop.var in v)) for a, v in groups]


def turn_around(
    index: Sequence[Expr],
    buffer: Buffer,
    component: Component,
    cells: Mapping[int, Var],
    reductions: frozenset[Var],
    assumed: Expr | None,
) -> Turned | str:
    """The component over `cells` (by axis) with as few loops kept as possible; a text with the reason if there
    is none.
    """
    reason = "no loops of it follow from its place in the buffer"
    for kept in _candidates(component, reductions):
        attempt = _Attempt(index, buffer, component, cells, kept, assumed)
        answer = attempt.turned()
        if not isinstance(answer, str):
            return answer
        reason = answer
    return reason


def _candidates(component: Component, reductions: frozenset[Var]) -> Iterator[tuple[For, ...]]:
    """Sets of loops to keep: small before large, reductions before others, inner loops before outer ones."""
    order = sorted(component.loops, key=lambda loop: (loop.var not in reductions, -component.loops.index(loop)))
    for count in range(len(order)):
        yield from combinations(order, count)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One choice of loops to keep."""

    index: Sequence[Expr]
    buffer: Buffer
    component: Component
    cells: Mapping[int, Var]
    kept: tuple[For, ...]
    assumed: Expr | None

    @property
    def gone(self) -> tuple[For, ...]:
        return tuple(loop for loop in self.component.loops if not any(loop is k for k in self.kept))

    def turned(self) -> Turned | str:
        """The inverse of the component.

        If cells are left over, the loops are taken as unbounded: of `i` below 3 in an axis of four, `i = p` says less
        about the cells left over than `i = 4*q + p` does, once a guard goes away. Iterations that are guarded off may
        be out of bounds.
        """
        exact = self.turned_within(whole=True)
        if isinstance(exact, Turned) and not exact.guards:
            return exact
        natural = self.turned_within(whole=False, any_length=True)
        if isinstance(natural, Turned):
            return natural
        return exact if isinstance(exact, Turned) else self.turned_within(whole=False)

    def turned_within(self, whole: bool, any_length: bool = False) -> Turned | str:
        """`whole`: every iteration lies in the buffer, and the cells that none has are known."""
        try:
            report = self.report(whole, any_length)
        except LayoutproofError as problem:
            return problem.diagnostics[0].message
        if report.injective.status is not Status.PROVED or report.inverse is None:
            return report.inverse_reason if report.inverse_reason is not None else "its index is not injective"
        return self.with_inverse(report, whole)

    def names(self) -> dict[Var, Var]:
        """The loops under names that mean nothing to maps: those of cells are `p0`, `p1`, ..."""
        taken = {v.name for axis in self.component.axes for v in free_variables(self.index[axis])}
        result: dict[Var, Var] = {}
        for k, loop in enumerate(self.component.loops):
            name = take_fresh(f"loop{k}", taken)
            result[loop.var] = Var(name, loop.var.dtype)
        return result

    def report(self, whole: bool, any_length: bool) -> MapReport:
        """The report of the index as a map of the loops that go away; with `whole` the buffer must contain its
        image.
        """
        names = self.names()
        shifted = {
            v: n if is_zero(loop.start) else loop.start + n
            for loop in self.gone
            for v, n in [(loop.var, names[loop.var])]
        }
        renamed: dict[Var, Expr] = {**shifted, **{loop.var: names[loop.var] for loop in self.kept}}
        outputs = tuple(substitute(self.index[axis], renamed) for axis in self.component.axes)
        index_map = IndexMap(tuple(names[loop.var] for loop in self.gone), outputs)
        ranges = [c for loop in self.kept for c in _range_of(names[loop.var], loop)]
        where = [*([self.assumed] if self.assumed is not None else []), *ranges]
        box = [self.buffer.shape[axis] for axis in self.component.axes] if whole else None
        shape: list[Expr] = [loop.extent for loop in self.gone]
        if any_length:
            shape = [Var(f"length_{names[loop.var].name}", loop.extent.dtype) for loop in self.gone]
        return check_map(index_map, shape, logical_and(*where) if where else None, physical_shape=box)

    def with_inverse(self, report: MapReport, whole: bool) -> Turned:
        assert report.inverse is not None
        back = {new.name: old for old, new in self.names().items()}
        cells = {f"p{k}": self.cells[axis] for k, axis in enumerate(self.component.axes)}
        values: dict[Var, Expr] = {}
        guards: list[Expr] = []
        for loop, output in zip(self.gone, report.inverse.outputs, strict=True):
            offset = renamed(output, {**back, **cells})
            values[loop.var] = offset if is_zero(loop.start) else loop.start + offset
            guards += [offset >= const(0, offset.dtype), offset < loop.extent]
        guards += [equal(substitute(self.index[axis], values), self.cells[axis]) for axis in self.component.axes]
        onto = whole and report.padding.predicate == FALSE
        return Turned(self.component, self.kept, values, () if onto else tuple(guards))


def _range_of(variable: Var, loop: For) -> tuple[Expr, Expr]:
    end = loop.extent if is_zero(loop.start) else loop.start + loop.extent
    return variable >= loop.start, variable < end


def renamed(expr: Expr, variables: Mapping[str, Var]) -> Expr:
    """The expression over the variables of these names."""
    types = {name: v.dtype for name, v in variables.items()}
    typed = retype(expr, {**types, **{v.name: v.dtype for v in free_variables(expr) if v.name not in types}})
    values: dict[Var, Expr] = {v: variables[v.name] for v in free_variables(typed) if v.name in variables}
    return substitute(typed, values)
