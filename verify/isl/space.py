"""Named isl dimensions, contexts and their budgets, over islpy, which is loaded at first use.

Only this module maps names to positions. A budget is a number of isl operations, so that an answer does not depend on
the machine. Part of the trusted computing base.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from layoutproof.verify.program.questions import Because
from layoutproof.verify.settings import scaled

__all__ = ["Late", "isl"]


class Late:
    """A proxy for an object that is made when an attribute is first asked for; each attribute is then kept."""

    def __init__(self, load: Callable[[], Any]) -> None:
        self._load = load

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._load(), name)
        setattr(self, name, value)
        return value


if not TYPE_CHECKING:

    def _load_islpy() -> object:
        import islpy

        return islpy

    isl = Late(_load_islpy)
else:
    import islpy as isl


DEFAULT_OPERATIONS = 200_000
_LONG = 1 << 62
_EXCEEDED = "maximal number of operations exceeded"
# With no operations left isl returns empty objects, for which islpy reports another type.
_NULL = re.compile(r"incompatible function arguments.*islpy\._isl", re.DOTALL)
# The limit of a context that must not be used any more.
_SPENT = 1


class BudgetExceeded(Exception):
    """isl gave up after the operations it was allowed; the answer is unknown."""

    because = (Because.BUDGET,)

    def __init__(self, operations: int) -> None:
        super().__init__(f"isl stopped after {operations} operations")
        self.operations = operations


class NoAnswer(BudgetExceeded):
    """isl failed inside, or a check showed its answer to be wrong; unknown, as where a budget is spent."""

    def __init__(self, why: str) -> None:
        Exception.__init__(self, why)
        self.operations = 0


# Messages of isl's internal failures, some of which are caused by the end of its budget.
_INTERNAL = (
    'Assertion "',
    "<no message>",
    "affine expression involves some of the domain dimensions",
    "original tableau does not correspond",
    "expecting integer affine expression",
)


def is_internal(problem: isl.Error) -> bool:
    """Whether isl failed inside: another form of the same question may have an answer."""
    return any(part in str(problem) for part in _INTERNAL)


def new_context() -> isl.Context:
    """A fresh context."""
    ctx = isl.Context()
    # isl 2026.2 sometimes crashes or fails when it joins pieces by dropping or changing existential variables.
    ctx.set_coalesce_preserve_locals(1)
    return ctx


def is_spent(context: isl.Context) -> bool:
    """Whether a block of work in a context did not end well, so that there is no other in it."""
    return bool(context.get_max_operations() == _SPENT)


@contextmanager
def limited(operations: int = DEFAULT_OPERATIONS, context: isl.Context | None = None) -> Iterator[isl.Context]:
    """A context (a fresh one unless given) in which isl may spend `operations` steps; the limit ends with the block.

    Raises BudgetExceeded when they are spent, NoAnswer where isl fails inside. Objects of the context may then be half
    changed and answer wrongly: every later block in it raises BudgetExceeded.
    """
    ctx, operations = new_context() if context is None else context, scaled(operations)
    if is_spent(ctx):
        raise BudgetExceeded(operations)
    ctx.reset_operations()
    ctx.set_max_operations(operations)
    left = 0
    try:
        yield ctx
    except isl.Error as problem:
        left = _SPENT
        if _EXCEEDED in str(problem):
            raise BudgetExceeded(operations) from problem
        if is_internal(problem):
            raise NoAnswer(f"isl failed: {problem}") from problem
        raise
    except TypeError as problem:
        left = _SPENT
        if _NULL.search(str(problem)) is None:
            raise
        raise BudgetExceeded(operations) from problem
    except BudgetExceeded:
        left = _SPENT
        raise
    finally:
        ctx.set_max_operations(left)
        ctx.reset_operations()


def value(ctx: isl.Context, number: int) -> isl.Val:
    """An isl integer of any size."""
    return isl.Val.int_from_si(ctx, number) if -_LONG < number < _LONG else isl.Val.read_from_str(ctx, str(number))


def integer(number: isl.Val) -> int:
    """The value of an isl integer. Raises BudgetExceeded where isl ran out of operations while it was computed."""
    text = number.to_str()
    if text is None:
        raise BudgetExceeded(number.get_ctx().get_max_operations())
    return int(text)


class NamedSpace:
    """A set space: `dims` in order, and `params`, with their positions by name."""

    def __init__(self, ctx: isl.Context, dims: Sequence[str], params: Sequence[str] = ()) -> None:
        if len({*dims, *params}) != len(dims) + len(params):
            raise ValueError(f"a space names a dimension twice: {[*dims, *params]}")
        self.ctx = ctx
        self.dims = tuple(dims)
        self.params = tuple(params)
        space = isl.Space.set_alloc(ctx, len(self.params), len(self.dims))
        for position, name in enumerate(self.params):
            space = space.set_dim_name(isl.dim_type.param, position, name)
        self.space = space
        self.local = isl.LocalSpace.from_space(space)
        self._positions = {name: (isl.dim_type.set, k) for k, name in enumerate(self.dims)}
        self._positions.update({name: (isl.dim_type.param, k) for k, name in enumerate(self.params)})

    def position(self, name: str) -> tuple[isl.dim_type, int]:
        """Where isl keeps `name`. Raises KeyError for a name the space does not have."""
        return self._positions[name]

    def __contains__(self, name: str) -> bool:
        return name in self._positions

    def name_at(self, kind: isl.dim_type, position: int) -> str:
        """The name of one dimension (`set` and `in_` are the same dimensions here)."""
        return self.params[position] if kind == isl.dim_type.param else self.dims[position]

    def variable(self, name: str) -> isl.Aff:
        """The affine function that is one dimension."""
        return isl.Aff.var_on_domain(self.local, *self.position(name))

    def constant(self, number: int) -> isl.Aff:
        """A constant affine function."""
        return isl.Aff.val_on_domain(self.space, value(self.ctx, number))

    def universe(self) -> isl.Set:
        """Every point, for every value of the parameters."""
        return isl.Set.universe(self.space)

    def empty(self) -> isl.Set:
        """No point."""
        return isl.Set.empty(self.space)

    def box(self, extents: dict[str, int | None]) -> isl.BasicSet:
        """`0 <= name` for each name, and `name < extent` where the extent is a number."""
        result = isl.BasicSet.universe(self.space)
        for name, extent in extents.items():
            kind, position = self.position(name)
            result = result.add_constraint(
                isl.Constraint.alloc_inequality(self.local).set_coefficient_val(kind, position, 1)
            )
            if extent is not None:
                upper = isl.Constraint.alloc_inequality(self.local).set_coefficient_val(kind, position, -1)
                result = result.add_constraint(upper.set_constant_val(value(self.ctx, extent - 1)))
        return result

    def with_dims(self, dims: Sequence[str]) -> NamedSpace:
        """The same parameters with other dimensions."""
        return NamedSpace(self.ctx, dims, self.params)


def map_from_affs(space: NamedSpace, outputs: Sequence[isl.PwAff], domain: isl.Set | None = None) -> isl.Map:
    """The relation from a point to the functions' values, on `domain` (everywhere they are defined by default).

    The range is unnamed; `NamedSpace.with_dims` gives it names when it is used as a set.
    """
    full = isl.Space.alloc(space.ctx, len(space.params), len(space.dims), len(outputs))
    for position, name in enumerate(space.params):
        full = full.set_dim_name(isl.dim_type.param, position, name)
    functions = isl.PwAffList.alloc(space.ctx, len(outputs))
    for output in outputs:
        functions = functions.add(output)
    result = isl.Map.from_multi_pw_aff(isl.MultiPwAff.from_pw_aff_list(full, functions))
    return result if domain is None else result.intersect_domain(domain)
