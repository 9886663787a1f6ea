"""Questions and proofs with one field changed."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.oracle.integers.items import Item

Path = tuple[int, ...]


@dataclass(frozen=True)
class Damaged:
    """An item of which one field of that role was changed."""

    role: str
    item: Item


def damaged(random: Random, item: Item) -> Damaged:
    """The item with one field changed, of a role that is chosen first: there are far more coefficients than splits."""
    fields: dict[str, list[Path]] = {}
    for role, path in _fields(item):
        fields.setdefault(role, []).append(path)
    role = random.choice(sorted(fields))
    path = random.choice(fields[role])
    other: Item = copy.deepcopy(item)
    *above, last = path
    holder: Any = other
    for step in above:
        holder = holder[step]
    _change(random, holder, last, _names(item))
    return Damaged(role, other)


def _names(item: Item) -> list[str]:
    return sorted({name for polynomial in (*item[0], *item[1]) for _, names in polynomial for name in names})


def _fields(item: Item) -> Iterator[tuple[str, Path]]:
    """The role and the path of each field."""
    yield from _polynomials("fact", item[0], (0,))
    yield from _polynomials("zero", item[1], (1,))
    for k, cases in enumerate(item[2]):
        yield "list of cases", (2, k)
        for n, (facts, zeros) in enumerate(cases):
            yield from _polynomials("fact of a case", facts, (2, k, n, 0))
            yield from _polynomials("zero of a case", zeros, (2, k, n, 1))
    yield from (("list of the question", (k,)) for k in range(3))
    stack: list[Path] = [(3,)]
    while stack:
        path = stack.pop()
        node: Any = item
        for step in path:
            node = node[step]
        yield "kind of a node", (*path, 0)
        yield "node", path
        if node[0] == "sum":
            yield from _sum(node, path)
        elif node[0] == "branch":
            yield from _polynomial("branch point", node[1], (*path, 1))
            stack += [(*path, 2), (*path, 3)]
        else:
            yield "number of a choice", (*path, 1)
            yield "proofs of cases", (*path, 2)
            stack += [(*path, 2, k) for k in range(len(node[2]))]


def _sum(node: Item, path: Path) -> Iterator[tuple[str, Path]]:
    for k, (_, numbers) in enumerate(node[1]):
        yield "multiplier", (*path, 1, k, 0)
        yield "product of facts", (*path, 1, k, 1)
        yield from (("number of a fact", (*path, 1, k, 1, n)) for n in range(len(numbers)))
    for k, (polynomial, _) in enumerate(node[2]):
        yield "number of a zero", (*path, 2, k, 1)
        yield from _polynomial("multiplier of a zero", polynomial, (*path, 2, k, 0))
    yield from (("terms of a sum", (*path, k)) for k in (1, 2))


def _polynomials(role: str, polynomials: Item, path: Path) -> Iterator[tuple[str, Path]]:
    for k, polynomial in enumerate(polynomials):
        yield from _polynomial(role, polynomial, (*path, k))


def _polynomial(role: str, polynomial: Item, path: Path) -> Iterator[tuple[str, Path]]:
    yield f"{role}: terms", path
    for k, (_, names) in enumerate(polynomial):
        yield f"{role}: {'coefficient' if names else 'constant'}", (*path, k, 0)
        yield from ((f"{role}: name", (*path, k, 1, n)) for n in range(len(names)))


def _change(random: Random, holder: Any, place: int, names: list[str]) -> None:
    value = holder[place]
    if isinstance(value, list):
        holder[place] = _other_list(random, value)
    elif isinstance(value, str):
        holder[place] = random.choice([*names, "sum", "branch", "split", 'x\u00e9"\\', "", 0, None])
    elif random.random() < 0.85:
        edges = (2**31, 2**32, 2**63)
        near = (value + 1, value - 1, -value, 0, 2 * value, random.randint(-5, 20), *(value + edge for edge in edges))
        large = (2**64 - 1, -(2**63), value << 40, value * 10**40, 1 << 4095, 1 << 4096)
        holder[place] = random.choice((*near, *large))
    else:
        holder[place] = random.choice([True, False, None, float(value), 1e300, str(value), [value], {"0": value}])


def _other_list(random: Random, items: list[Any]) -> object:
    """With an entry deleted, twice, or at another place; or none, or no list at all."""
    how = random.choice(("delete", "delete", "twice", "swap", "reverse", "other"))
    if how == "other" or not items:
        return random.choice([[], None, {}, "sum", [[]], [items]])
    k, n = random.randrange(len(items)), random.randrange(len(items))
    found = list(items)
    if how == "delete":
        del found[k]
    elif how == "twice":
        found.insert(n, copy.deepcopy(items[k]))
    elif how == "swap":
        found[k], found[n] = found[n], found[k]
    else:
        found.reverse()
    return found
