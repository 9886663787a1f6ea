"""The program model: every load and store with the loops, guards and timestamp of its iteration domain. Block variables
and lets that are index arithmetic are replaced by their values; data is an unknown of its type. Part of the trusted
computing base.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import Binary, Cast, Expr, IfThenElseExpr, IntImm, Logical, Not, Var
from layoutproof.ir.interval import Interval, Ranges, interval_of, of_type
from layoutproof.ir.intrinsics import Call, OpaqueCall, Undef
from layoutproof.ir.node import Node
from layoutproof.ir.operators import DIVISIONS, BinaryOp, LogicalOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore, ForKind, IterVar
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import children, free_variables, walk
from layoutproof.verify.program.location import Place, Spot


class AccessKind(StrEnum):
    """What an instance does to its cell. An ASSUME looks at a cell at compile time only."""

    READ = "read"
    WRITE = "write"
    ASSUME = "assume"


@dataclass(frozen=True, slots=True)
class Dim:
    """One coordinate of an instance: a loop, or a vector `lane`. Bounds are over outer dims, unknowns and symbols."""

    var: Var
    start: Expr
    extent: Expr
    kind: ForKind
    lane: bool = False


def ranges_of(dims: Sequence[Dim]) -> dict[str, tuple[int, int]]:
    """The least and the largest value of each dim whose bounds are numbers, where it has any."""
    ends = ((dim.var.name, dim.start, dim.extent) for dim in dims)
    return {
        n: (s.value, s.value + e.value - 1)
        for n, s, e in ends
        if isinstance(s, IntImm) and isinstance(e, IntImm) and e.value > 0
    }


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that depends on data: any value of its type. `source` is the expression that it stands for."""

    var: Var
    source: Expr


@dataclass(frozen=True, slots=True)
class Guard:
    """A conjunct: `condition` has the truth value `holds`. Conjuncts of one condition have one `group`."""

    condition: Expr
    holds: bool = True
    group: int = field(default=0, compare=False)

    @property
    def as_expr(self) -> Expr:
        """The guard as one expression that is to be true."""
        return self.condition if self.holds else Not(self.condition)


@dataclass(frozen=True, slots=True)
class IterationDomain:
    """The iteration domain of an access: the coordinates around it, its guards, and its timestamp.

    `time` compares lexicographically with that of any other iteration domain: a number where the text gives the order,
    a dim where a loop does. `dropped` has the conjuncts that could not be expressed, `allocations` the number of dims
    around each temporary's allocation. `exact` is False if it over-approximates for another reason than `dropped`.
    """

    dims: tuple[Dim, ...] = ()
    guards: tuple[Guard, ...] = ()
    time: tuple[int | Dim, ...] = ()
    dropped: tuple[Expr, ...] = ()
    unknowns: tuple[Unknown, ...] = ()
    allocations: Mapping[Var, int] = field(default_factory=dict)
    exact: bool = True

    def at(self, *timestamps: int | Dim) -> IterationDomain:
        """The same iteration domain at a later or nested timestamp."""
        return self._over(self.dims, (*self.time, *timestamps))

    def depends_on_data(self, *exprs: Expr) -> bool:
        """Whether data decides which of the instances happen, or what one of the expressions is."""
        if self.dropped or not self.exact:
            return True
        if not self.unknowns:
            return False
        parts = [*exprs, *(g.condition for g in self.guards), *(e for d in self.dims for e in (d.start, d.extent))]
        used = {variable for expr in parts for variable in free_variables(expr)}
        return any(unknown.var in used for unknown in self.unknowns)

    def inside(self, dim: Dim) -> IterationDomain:
        """The iteration domain with one more coordinate."""
        return self._over((*self.dims, dim), (*self.time, dim))

    def _over(self, dims: tuple[Dim, ...], time: tuple[int | Dim, ...]) -> IterationDomain:
        # Not by `replace`, which looks at every field anew: each statement, loop and access asks for one.
        return IterationDomain(dims, self.guards, time, self.dropped, self.unknowns, self.allocations, self.exact)


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store in the text, in all its instances.

    `data` is the memory, also under another pointer name. `indices` are scalars over dims, unknowns and symbols. `node`
    is the load or store.
    """

    kind: AccessKind
    buffer: Buffer
    data: Var
    indices: tuple[Expr, ...]
    domain: IterationDomain
    node: Node
    spot: Spot

    @property
    def data_dependent(self) -> bool:
        """Whether data decides which of the instances happen, or where they go."""
        return self.domain.depends_on_data(*self.indices)

    @property
    def text(self) -> str:
        """The access in the source's terms, with block variables."""
        assert isinstance(self.node, BufferLoad | BufferStore)
        return f"{self.buffer.name}[{', '.join(expr_text(i, Style.PLAIN) for i in self.node.indices)}]"

    @property
    def place(self) -> Place:
        """Where the access stands, for a claim."""
        return self.spot.place_of(self.node)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """An integer expression that is evaluated: index arithmetic, which must fit its type, or data that may trap.

    `expr` has loop variables for block variables and unknowns for data. `extent` is that of the axis of an index.
    """

    expr: Expr
    domain: IterationDomain
    node: Node
    spot: Spot
    is_index: bool = True
    extent: Expr | None = None

    @property
    def place(self) -> Place:
        """Where it stands, for a claim."""
        return self.spot.place_of(self.node)

    def parts(self, *, eager: bool = False) -> Iterator[tuple[Expr, IterationDomain]]:
        """Each subexpression with its domain: a lazy operator guards its branches (`and` and `or` not with `eager`)."""
        stack = [(self.expr, self.domain)]
        while stack:
            expr, domain = stack.pop()
            yield expr, domain
            match expr:
                case IfThenElseExpr(condition=condition, then=then, otherwise=otherwise):
                    stack += [
                        (otherwise, _under(domain, condition, False)),
                        (then, _under(domain, condition, True)),
                        (condition, domain),
                    ]
                case Logical(op=op, lhs=lhs, rhs=rhs):
                    stack += [(rhs, domain if eager else _under(domain, lhs, op is LogicalOp.AND)), (lhs, domain)]
                case BufferLoad():
                    pass
                case _:
                    stack += [(child, domain) for child in children(expr) if isinstance(child, Expr)]


def _under(domain: IterationDomain, condition: Expr, holds: bool) -> IterationDomain:
    return replace(domain, guards=(*domain.guards, *conjuncts(condition, holds)))


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop in the text, and the iteration domain in which it is entered."""

    dim: Dim
    domain: IterationDomain
    node: Node
    spot: Spot


@dataclass(frozen=True, slots=True)
class Allocation:
    """Memory that the program makes, with its extents over what has a meaning there, and where it does."""

    buffer: Buffer
    extents: tuple[Expr, ...]
    domain: IterationDomain
    node: Node
    spot: Spot


@dataclass(frozen=True, slots=True)
class Binding:
    """A block variable in its block: `within` is the condition that its value is in the variable's range."""

    iter_var: IterVar
    within: Expr
    domain: IterationDomain
    node: Node
    spot: Spot


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something in the program that is not modelled, and where."""

    what: str
    node: Node
    spot: Spot


@dataclass(frozen=True, slots=True)
class Program:
    """All accesses of a function in the order of the text, and what is known of its symbols.

    `symbols` are scalar parameters and the variables of shapes; `assumed` are conditions on symbols alone, from the
    caller of the prover and from the program. `eager` is the arithmetic of code that evaluates both sides of `and` and
    `or`, `made` the memory that it allocates.
    """

    function: PrimFunc
    symbols: tuple[Var, ...]
    assumed: tuple[Expr, ...]
    accesses: tuple[Access, ...]
    arithmetic: tuple[Arithmetic, ...]
    loops: tuple[Loop, ...]
    bindings: tuple[Binding, ...]
    views: tuple[tuple[Buffer, Node], ...]
    obstacles: tuple[Obstacle, ...]
    temporaries: frozenset[Var]
    buffers: tuple[Buffer, ...]
    eager: tuple[Arithmetic, ...]
    made: tuple[Allocation, ...]
    _touching: Mapping[Var, Sequence[Access]] = field(init=False, compare=False, repr=False)
    _owners: Mapping[Var, Buffer] = field(init=False, compare=False, repr=False)
    _owned: Mapping[Var, int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        touching: dict[Var, list[Access]] = {}
        for access in self.accesses:
            touching.setdefault(access.data, []).append(access)
        object.__setattr__(self, "_touching", touching)
        object.__setattr__(self, "_owners", {buffer.data: buffer for buffer in reversed(self.buffers)})
        object.__setattr__(self, "_owned", Counter(buffer.data for buffer in self.buffers))

    def touching(self, data: Var) -> Iterator[Access]:
        """The accesses of one memory, in the order of the text."""
        return iter(self._touching.get(data, ()))

    def allocation(self, data: Var) -> Buffer | None:
        """The buffer of a parameter or an allocation to which the memory belongs, if there is one."""
        return self._owners.get(data)

    def allocations(self, data: Var) -> int:
        """How many buffers of parameters and allocations the memory belongs to."""
        return self._owned.get(data, 0)


def conjuncts(condition: Expr, holds: bool = True) -> Iterator[Guard]:
    """The parts that must all hold for `condition` to be `holds`."""
    stack = [Guard(condition, holds)]
    while stack:
        guard = stack.pop()
        match guard.condition:
            case Not(operand=operand):
                stack.append(Guard(operand, not guard.holds))
            case Logical(op=op, lhs=lhs, rhs=rhs) if (op is LogicalOp.AND) == guard.holds:
                stack += [Guard(rhs, guard.holds), Guard(lhs, guard.holds)]
            case _:
                yield guard


_SHIFTS = frozenset((BinaryOp.SHL, BinaryOp.SHR))
_CLOSED = frozenset((BinaryOp.MIN, BinaryOp.MAX, BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR))


def can_trap(expr: Node) -> bool:
    """Whether the operation itself may have no result: integer division, a shift, a cast from float to integer."""
    match expr:
        case Binary(op=op):
            return expr.dtype.is_integer and (op in DIVISIONS or op in _SHIFTS)
        case Cast(dtype=dtype, value=value):
            return dtype.is_integer and value.dtype.is_float
        case _:
            return False


def keeps_range(expr: Expr) -> bool:
    """Whether the operation cannot leave its type when its operands fit theirs, so that it never wraps."""
    match expr:
        case Binary(op=op, rhs=rhs):
            small = isinstance(rhs, IntImm) and rhs.value > 0
            return op in _CLOSED or (small and (op in DIVISIONS or op is BinaryOp.SHR))
        case Cast(dtype=dtype, value=value):
            source = value.dtype
            return source.is_bool or (
                source.is_integer and dtype.min_int <= source.min_int and source.max_int <= dtype.max_int
            )
        case Call():
            return False
        case _:
            return True


def is_larger(expr: Expr, most: int) -> bool:
    """Whether an expression, written out, has more than so many nodes."""
    return len(list(islice(walk(expr), most + 1))) > most


def is_index_like(expr: Expr) -> bool:
    """Whether a number is an integer over variables and constants, without loads, calls or floats."""
    return expr.dtype.is_integer and not any(
        isinstance(node, BufferLoad | Undef | OpaqueCall) or (isinstance(node, Expr) and node.dtype.is_float)
        for node in walk(expr)
    )


def domain_ranges(domain: IterationDomain, symbols: Ranges) -> dict[Var, Interval]:
    """The intervals of symbols (as given), loops (by their bounds, without guards) and unknowns (by their type)."""
    ranges = dict(symbols)
    for unknown in domain.unknowns:
        ranges[unknown.var] = of_type(unknown.var.dtype)
    for dim in domain.dims:
        start, extent = interval_of(dim.start, ranges), interval_of(dim.extent, ranges)
        # A loop that never runs has no values; any interval will do.
        ranges[dim.var] = Interval(start.low, max(start.low, start.high + extent.high - 1))
    return ranges
