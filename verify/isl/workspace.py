"""One isl context and one space of symbols for everything that is asked of a rewrite's programs, and scenes as sets in it. Part of
the trust base.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.interval import Interval
from layoutproof.verify.evidence import UNRECORDED, Gathered
from layoutproof.verify.instances import Dim, Guard, Scene, ranges_of
from layoutproof.verify.isl.coalesce import coalesced
from layoutproof.verify.isl.encode import Encoder, NotQuasiAffine
from layoutproof.verify.isl.library import isl
from layoutproof.verify.isl.space import DEFAULT_OPERATIONS, NamedSpace, limited, map_from_affs, new_context
from layoutproof.verify.statement import NotModelled

_LARGE = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Instances:
    """A scene as a set without a tuple name, exactly, with the encoder of expressions over its dims."""

    space: NamedSpace
    encoder: Encoder
    points: isl.Set

    def map_to(self, outputs: Sequence[Expr]) -> isl.Map:
        """Instance -> the values of expressions, without tuple names. Raises NotModelled."""
        with said():
            return map_from_affs(self.space, [self.encoder.function(e) for e in outputs], self.points)


@contextmanager
def said() -> Iterator[None]:
    """What integer sets cannot say has no exact model: NotModelled names it."""
    try:
        yield
    except NotQuasiAffine as problem:
        raise NotModelled(problem.reason, problem.expr) from problem


class Workspace:
    """One isl context and one space of symbols for all programs of a rewrite.

    `assumed` are conditions on symbols (what isl cannot say of them is left out, so that more values are allowed), `ranges` bounds
    symbols. `operations` bounds each outermost `limited` block. What integer sets answer is `gathered`.
    """

    def __init__(
        self,
        symbols: Sequence[Var],
        assumed: Sequence[Expr],
        ranges: Mapping[Var, Interval],
        operations: int = DEFAULT_OPERATIONS,
        gathered: Gathered = UNRECORDED,
    ) -> None:
        self.symbols = tuple(dict.fromkeys(symbols))
        self.operations, self.gathered = operations, gathered
        self.ctx = new_context()
        self.params = tuple(dict.fromkeys(symbol.name for symbol in self.symbols))
        self._nested = False
        with self.limited():
            self.context: isl.Set = self._context(assumed, ranges)

    @contextmanager
    def limited(self) -> Iterator[isl.Context]:
        """isl may spend the workspace's operations inside; a block inside another shares its budget.

        Raises BudgetExceeded, and NotModelled where isl fails for another reason.
        """
        if self._nested:
            yield self.ctx
            return
        self._nested = True
        try:
            with limited(self.operations, self.ctx):
                yield self.ctx
        except isl.Error as problem:
            raise NotModelled(f"isl could not go on: {problem}") from problem
        finally:
            self._nested = False

    def space(self, names: Sequence[str]) -> NamedSpace:
        """The space of some dims over the symbols."""
        return NamedSpace(self.ctx, names, self.params)

    def _context(self, assumed: Sequence[Expr], ranges: Mapping[Var, Interval]) -> isl.Set:
        """The values of the symbols that are allowed, as a set without dims."""
        space = self.space(())
        encoder = Encoder(space)
        points = space.universe()
        for variable, interval in ranges.items():
            if variable.name not in space:
                continue
            function = encoder.function(Var(variable.name, variable.dtype))
            # The bounds of the types themselves only burden the sets: leaving them out allows more.
            if -_LARGE < interval.low:
                points = points.intersect(function.ge_set(encoder.constant(int(interval.low))))
            if interval.high < _LARGE:
                points = points.intersect(function.le_set(encoder.constant(int(interval.high))))
        for condition in assumed:
            try:
                points = points.intersect(encoder.set_of(condition))
            except NotQuasiAffine:
                continue
        return coalesced(points)

    def instances(self, scene: Scene) -> Instances:
        """All instances of a scene. Raises NotModelled for a bound or a guard that integer sets cannot say."""
        return self.restricted(self.boxed(scene.dims), scene.guards)

    def boxed(self, dims: Sequence[Dim]) -> Instances:
        """All values of some loops."""
        space = self.space([dim.var.name for dim in dims])
        plain = Encoder(space)
        points = space.universe().intersect_params(self.context.params())
        with said():
            for dim in dims:
                variable, start = plain.function(dim.var), plain.function(dim.start)
                points = points.intersect(variable.ge_set(start)).intersect(variable.lt_set(start.add(plain.function(dim.extent))))
        return Instances(space, Encoder(space, points, ranges=ranges_of(dims)), points)

    def restricted(self, instances: Instances, guards: Sequence[Guard]) -> Instances:
        """The instances where conditions hold."""
        points = instances.points
        with said():
            for guard in guards:
                points = points.intersect(instances.encoder.set_of(guard.condition, guard.holds))
        if not guards:
            return instances
        points = coalesced(points)
        return Instances(instances.space, Encoder(instances.space, points, ranges=instances.encoder.ranges), points)
