"""The exact model of a program by brute force, with no integer sets: every instance of every statement in order, and
what each read finds; and the model run on arrays, to be compared with the reference interpreter.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import islpy as isl

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr
from layoutproof.verify.isl.dataflow import Dataflow
from layoutproof.verify.program.instances import Dim, IterationDomain
from layoutproof.verify.program.statement import AssumedFact, Read, Statement, Statements

Env = dict[str, int]
Point = tuple[int, ...]
Named = tuple[str, Point]
Pairs = set[tuple[Named, Named]]
Time = tuple[int, ...]


def points(domain: IterationDomain, symbols: Mapping[str, int]) -> Iterator[Env]:
    """The instances of a iteration domain, loop by loop."""

    def nested(position: int, env: Env) -> Iterator[Env]:
        if position == len(domain.dims):
            if all(bool(evaluate(g.as_expr, env)) for g in domain.guards):
                yield dict(env)
            return
        dim = domain.dims[position]
        start, extent = int(evaluate(dim.start, env)), int(evaluate(dim.extent, env))
        for number in range(start, start + extent):
            yield from nested(position + 1, {**env, dim.var.name: number})

    yield from nested(0, dict(symbols))


def key_of(dims: Sequence[Dim], env: Mapping[str, int]) -> Point:
    """An instance as numbers."""
    return tuple(env[dim.var.name] for dim in dims)


def timestamp(time: Sequence[int | Dim], env: Mapping[str, int]) -> Time:
    """A time as numbers."""
    return tuple(part if isinstance(part, int) else env[part.var.name] for part in time)


def cell(coordinates: Sequence[Expr], env: Mapping[str, int]) -> Point:
    """Coordinates as numbers."""
    return tuple(int(evaluate(c, env)) for c in coordinates)


@dataclass
class Oracle:
    """Everything about a program at one value of its symbols; `tag` names tuples as the dataflow does."""

    statements: Statements
    symbols: Mapping[str, int]
    tag: str
    removed: Mapping[int, set[Point]] = field(default_factory=dict)
    _writes: dict[tuple[Any, frozenset[int]], dict[Point, list[tuple[Time, Named]]]] = field(default_factory=dict)

    def name(self, statement: Statement) -> str:
        """The tuple name of a statement."""
        return f"{self.tag}{statement.number}"

    # Instances

    def instances(self, statement: Statement) -> Iterator[Env]:
        """The instances of a statement that happen and are not removed."""
        gone = self.removed.get(statement.number, set())
        yield from (env for env in points(statement.domain, self.symbols) if key_of(statement.dims, env) not in gone)

    def reading(self, statement: Statement | AssumedFact, read: Read, env: Env) -> Iterator[Env]:
        """The instances of a read at one of its statement."""
        extra = IterationDomain(read.access.domain.dims[len(statement.dims) :], read.access.domain.guards)
        yield from points(extra, env)

    # Flow

    def writes(self, data: Any, chain: frozenset[int], inside: bool) -> dict[Point, list[tuple[Time, Named]]]:
        """By cell, every write in the order of time: of the chain, or of everything else."""
        key = (data, frozenset((*chain, -1)) if inside else chain)
        known = self._writes.get(key)
        if known is None:
            known = {}
            for statement in self.statements.statements:
                if statement.data != data or (statement.number in chain) != inside:
                    continue
                for env in self.instances(statement):
                    time = timestamp(statement.domain.time, env)
                    event = (time, (self.name(statement), key_of(statement.dims, env)))
                    known.setdefault(cell(statement.coordinates, env), []).append(event)
            for events in known.values():
                events.sort()
                assert len({time for time, _ in events}) == len(events), "two writes of a cell at one time"
            self._writes[key] = known
        return known

    def before(
        self, data: Any, at: Point, time: Time, chain: frozenset[int] = frozenset()
    ) -> tuple[Named, list[Named]]:
        """The last write outside the chain before a time, or the initial cell; and what the chain wrote after that."""
        outside = self.writes(data, chain, False).get(at, [])
        position = bisect_left(outside, (time,))
        owner = outside[position - 1] if position else ((), (f"{self.tag}in_{data.name}", at))
        inner = self.writes(data, chain, True).get(at, []) if chain else []
        return owner[1], [event for when, event in inner if owner[0] < when < time]

    def sources(self, statement: Statement, read: Read, chain: frozenset[int] = frozenset()) -> tuple[Pairs, Pairs]:
        """What `Dataflow.sources` (with a chain: `reduced`) should say."""
        owners, parts = set(), set()
        for env in self.instances(statement):
            for inner in self.reading(statement, read, env):
                here = (self.name(statement), key_of(read.access.domain.dims, inner))
                time = timestamp(read.access.domain.time, inner)
                owner, chained = self.before(read.data, cell(read.coordinates, inner), time, chain)
                owners.add((here, owner))
                parts |= {(here, part) for part in chained}
        return owners, parts

    def assumed(self, number: int, read: Read) -> Pairs:
        """What `Dataflow.assumed_sources` should say."""
        fact, found = self.statements.assumptions[number], set()
        for env in points(fact.domain, self.symbols):
            for inner in self.reading(fact, read, env):
                owner, _ = self.before(
                    read.data, cell(read.coordinates, inner), timestamp(read.access.domain.time, inner)
                )
                found.add(((f"{self.tag}a{number}", key_of(read.access.domain.dims, inner)), owner))
        return found

    def box(self, data: Any) -> Iterator[Point]:
        """Every cell of a memory."""
        leading, box = self.statements.leading[data], self.statements.cells[data]

        def nested(position: int, env: Env, done: Point) -> Iterator[Point]:
            if position == len(box):
                yield done
                return
            start = int(evaluate(leading[position].start, env)) if position < len(leading) else 0
            for number in range(start, start + int(evaluate(box[position], env))):
                inner = {**env, leading[position].var.name: number} if position < len(leading) else env
                yield from nested(position + 1, inner, (*done, number))

        yield from nested(0, dict(self.symbols), ())

    def final(self, data: Any, chain: frozenset[int] = frozenset()) -> tuple[Pairs, Pairs]:
        """What `Dataflow.final` (with a chain: `reduced_final`) should say."""
        owners, parts = set(), set()
        for at in self.box(data):
            owner, chained = self.before(data, at, (1 << 40,), chain)
            here = (f"{self.tag}out_{data.name}", at)
            owners.add((here, owner))
            parts |= {(here, part) for part in chained}
        return owners, parts


# What the dataflow says, point by point


def fixed(flow: Dataflow, symbols: Mapping[str, int]) -> isl.Set:
    """The parameters at one value."""
    result = flow.workspace.context.params()
    for position, name in enumerate(flow.workspace.params):
        result = result.fix_val(isl.dim_type.param, position, isl.Val.int_from_si(flow.workspace.ctx, symbols[name]))
    return result


def set_points(points_of: isl.Set, at: isl.Set) -> set[Point]:
    """The points of a set at one value of the parameters."""
    found: set[Point] = set()
    inside = points_of.intersect_params(at)
    count = inside.dim(isl.dim_type.set)
    inside.foreach_point(
        lambda p: found.add(tuple(p.get_coordinate_val(isl.dim_type.set, k).to_python() for k in range(count)))
    )
    return found


def pairs(relation: isl.UnionMap, at: isl.Set) -> Pairs:
    """The pairs of a relation at one value of the parameters."""
    found: Pairs = set()

    def visit(each: isl.Map) -> None:
        count, names = (
            each.dim(isl.dim_type.in_),
            (each.get_tuple_name(isl.dim_type.in_), each.get_tuple_name(isl.dim_type.out)),
        )
        for point in set_points(each.wrap(), at):
            found.add(((names[0], point[:count]), (names[1], point[count:])))

    relation.foreach_map(visit)
    return found


def differences(oracle: Oracle, flow: Dataflow, chains: Sequence[frozenset[int]] = ()) -> list[str]:
    """What the dataflow says otherwise than the oracle, everything compared."""
    at, found = fixed(flow, oracle.symbols), list[str]()

    def compare(what: str, expected: set[Any], got: set[Any]) -> None:
        if expected != got:
            found.append(f"{what}: missing {sorted(expected - got)[:3]}, too much {sorted(got - expected)[:3]}")

    for statement in oracle.statements.statements:
        expected = {key_of(statement.dims, env) for env in oracle.instances(statement)}
        compare(f"domain of {statement.number}", expected, set_points(flow.domain(statement), at))
        for read in statement.reads:
            where = f"{statement.number} {read.var.name}"
            compare(where, oracle.sources(statement, read)[0], pairs(flow.sources(statement, read), at))
            for chain in chains:
                wanted, got = oracle.sources(statement, read, chain), flow.reduced(statement, read, chain)
                compare(f"{where} owner {sorted(chain)}", wanted[0], pairs(got[0], at))
                compare(f"{where} chain {sorted(chain)}", wanted[1], pairs(got[1], at))
    for number, fact in enumerate(oracle.statements.assumptions):
        for read in fact.reads:
            compare(
                f"assumption {number} {read.var.name}",
                oracle.assumed(number, read),
                pairs(flow.assumed_sources(number, read), at),
            )
    for data in oracle.statements.cells:
        compare(f"cells of {data.name}", set(oracle.box(data)), set_points(flow.cell_set(data), at))
        compare(f"final {data.name}", oracle.final(data)[0], pairs(flow.final(data), at))
        for chain in chains:
            wanted, got = oracle.final(data, chain), flow.reduced_final(data, chain)
            compare(f"final {data.name} owner {sorted(chain)}", wanted[0], pairs(got[0], at))
            compare(f"final {data.name} chain {sorted(chain)}", wanted[1], pairs(got[1], at))
    return found
