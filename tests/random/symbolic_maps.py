"""Random index maps with symbolic extents, and the judging of their reports: every claim is instantiated and tried by
brute force.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

from hypothesis import strategies as st

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.notations.map_text import parse_condition, parse_index_map, parse_shape
from layoutproof.ir.visit import free_variables
from layoutproof.verify.maps.check_map import check_map
from tests.judging import Complaint, is_counterexample, judge
from tests.oracle import maps as oracle
from tests.random.index_maps import digits, factor, one_of, shifted

EXTENTS = (*range(1, 21), 32, 45)
MOST_POINTS = 2_000
MOST_CELLS = 20_000
PAIRS = 40
"""How many pairs of extents are tried of a map with two symbols: small ones, and others drawn at random."""


@dataclass(frozen=True)
class SymbolicMap:
    """A map's text over a shape with names in it, with a precondition on the names (None: none)."""

    text: str
    shape: tuple[str, ...]
    where: str | None

    def __str__(self) -> str:
        return f"{self.text}  on [{', '.join(self.shape)}]  where {self.where}"

    @property
    def symbols(self) -> list[str]:
        """The names in the shape."""
        return [name for name in ("n", "m") if any(name in extent for extent in self.shape)]


def _split(rng: Random) -> tuple[str, str]:
    radices = [factor(rng) for _ in range(rng.choice([1, 1, 2]))]
    outputs = digits(rng, shifted(rng, "i"), radices)
    if rng.random() < 0.3:
        rng.shuffle(outputs)
    if rng.random() < 0.15:
        outputs.pop()
    return "; ".join(outputs), "n"


def _one(rng: Random) -> tuple[str, str]:
    k, c = factor(rng), rng.randint(1, 9)
    forms = f"""
        n - 1 - i | n                (i + {c}) % n | n          (i - {c}) % n | n              i; 0 | n
        i + {c} | n
        2*i + 1 | n                  i // n; i % n | 4*n        i // n; i % n | {c}*n          i % {k}; i % {k + 1} | n
        i % n; i // n | n + {c}      min(i, {c}); max(i, {c}) | n    select(i < {c}, 0, 1); i | n
        ({k}*i) % {k + c} | n
        i // 8; ((i // 8) % 8) ^ (i % 8) | n    i; j ^ (i % 4) | n; 4    i ^ {c} | n                i & 7; i >> 3 | n
        i + n; i | n                 i * n + j | n; n           i * n + j | {c}; n             j * n + i | n; {c}
        i * {c} + j | n; {c}         i * {c} + j | n; {c + 1}   (i * {c} + j) // {k}; (i * {c} + j) % {k} | n; {c}
        i + j; j | n; {c}            {c}*i + j | n; {c}         (i + j) % n; j | n; n          (i + j) % n; j | n; {c}
        (i + j) % {c}; j | {c}; n    i - {c} | n                {c} - i | n                    abs(i - {c}) | n
        i // (n + 1); i % (n + 1) | n    i // 2; i % 2; n - 1 | n    (2*i) % n | n
        i * (n + {c}) + j | {k}; n
        (i // {k}) * {k} + ({k - 1} - i % {k}) | n              i // {k}; {k - 1} - i % {k} | n      n | n
        n - 1; i | n
        min(i, n - 1) | n            min(i, n // 2); i | n      min(i, n // 2); max(i - n // 2, 0) | n
        i; (j + i) % n; k // {k}; k % {k} | n; n; {2 * k + 1}
    """
    outputs, shape = one_form(rng, forms)
    return outputs, shape


def _two(rng: Random) -> tuple[str, str]:
    k, c = factor(rng), rng.randint(1, 6)
    forms = f"""
        i * m + j | n; m          j * n + i | n; m          i * n + j | n; m           i * m + j + {c} | n; m
        j; i | n; m
        i + j; j | n; m           i + j | n; m              i - j + m; j | n; m        i - j + m - 1; j | n; m
        (i + j) % n; j | n; m
        (i + {c}*j) % n; j | n; m    (i + j) % m; j | n; m  i // m; i % m | n*m        i // n; i % n | n*m
        i // m; i % m | n
        i; j // {k}; j % {k} | n; m    i // {k}; j // {k}; i % {k}; j % {k} | n; m
        (i + {c}) // {k}; j; (i + {c}) % {k} | n; m
        select(i < m, i, i + n) | n    i % m; i // m | n    min(i, m); max(i, m) | n   i * (m + 1) + j | n; m
        i * m + j | n; m + 1
        (i * m + j) // {k}; (i * m + j) % {k} | n; m        i; j; k | n; m; {c}        n - 1 - i; m - 1 - j | n; m
        i + m; j | n; m
        i // n; i % n; j | {c}*n; m    (i // {k}) * m + j; i % {k} | n; m
        i * m * {k} + j * {k} + k | n; m; {k}
        i // {k}; j; i % {k} | n + m; m    i + j | n; 1     max(i, j); min(i, j) | n; m    i ^ j | n; m
        i - m | n
        (i + m) // {k}; (i + m) % {k} | n    i // (m + {c}); i % (m + {c}) | n         i * j; i | n; m
        j * n + i; 0 | n; m
        j // 8; i // 16; (i % 16) // 4; j % 8; i % 4 | n; m    i // {4 * k}; (i % {4 * k}) // {k}; j; i % {k} | n; m
        ((i // 4) * m + j) * 4 + i % 4 | n; m    i // {k}; j; (i % {k}) ^ (j % {k}) | n; m
        (i // {k}) * m + j; k; i % {k} | n; m; {c}
    """
    return one_form(rng, forms)


def one_form(rng: Random, forms: str) -> tuple[str, str]:
    """One `outputs | shape` of a table."""
    outputs, shape = "; ".join(one_of(rng, forms)).split(" | ")
    return outputs, shape


def _tree(rng: Random, leaves: str, depth: int) -> str:
    """A random tree of `// % + - *` over indices, symbols and small constants; divisors may be symbols."""
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(leaves) if rng.random() < 0.85 else str(rng.randint(0, 6))
    left, kind = _tree(rng, leaves, depth - 1), rng.choice(["+", "+", "-", "*", "//", "//", "%", "%"])
    if kind in "+-":
        return f"({left} {kind} {_tree(rng, leaves, depth - 1)})"
    right = (
        rng.choice(["n", "n", "(n + 1)", "m"]) if rng.random() < 0.3 else rng.choice(["2", "3", "4", "5", "8", "-2"])
    )
    return f"({left} {kind} {right})"


def _nests(rng: Random) -> tuple[str, str]:
    shape = rng.choice(["n", "n", "n; m", "n; 4", "3; n", "n; n", "2*n", "n*m", "n + 3", "n // 2", "n; m; 2"])
    names = "ijk"[: len(shape.split("; "))]
    leaves = names * 3 + ("nm" if rng.random() < 0.4 else "")
    outputs = [_tree(rng, leaves, rng.randint(1, 3)) for _ in range(rng.choice([1, 2, 2]))]
    outputs = [
        rng.choice([o, f"{o} % {rng.choice([2, 3, 5, 8])}", f"{o} + {rng.randint(1, 20)}", f"{o} % n"]) for o in outputs
    ]
    if rng.random() < 0.6:
        outputs += list(names)
    return "; ".join(outputs), shape


CONDITIONS = """
    n >= 1    n >= 1 and m >= 1    n % 4 == 0    n % 8 == 0 and n >= 1    n <= 8    m <= n    n <= m    n == 2*m
    n > m and m >= 1
    n != 3    n >= 4 or m >= 2     n == m        n >= 32                  n % m == 0 and m >= 1    n < 12 and m < 5
    not n < 3    n == 7
    n % 2 == 1 and m >= 2          m == 4        n // 4 >= 2              n*m <= 40    min(n, 9) <= 4
    max(n, 3) <= 4    not (n > 4 and n < 9)    n & 3 == n    n >> 2 == 1    n % 6 == 0 and n % 4 == 0
    n < 3 or n % 2 == 0 and n <= 10
"""


def symbolic(rng: Random) -> SymbolicMap:
    """A map on one or two symbolic extents; about a third of the time without a precondition."""
    outputs, shape = rng.choice([_split, _one, _one, _two, _two, _nests, _nests])(rng)
    names = "ijk"[: len(shape.split("; "))]
    where = None if rng.random() < 0.35 else one_of(rng, CONDITIONS)[0]
    if where is not None and speaks_of_m(where) and not speaks_of_m(shape):
        where = "n >= 1"
    if speaks_of_m(outputs) and not speaks_of_m(shape):
        extra = "ijk"[len(names)]
        names, outputs, shape = names + extra, f"{outputs}; {extra}", f"{shape}; m"
    inputs = list(names)
    if rng.random() < 0.1 and not re.search(r"\bn\b", outputs):
        # An input named like an extent hides it, as in `lambda n, c: [...]` on (n, c).
        outputs, inputs[0] = re.sub(rf"\b{inputs[0]}\b", "n", outputs), "n"
    return SymbolicMap(
        f"lambda {', '.join(inputs)}: [{', '.join(outputs.split('; '))}]", tuple(shape.split("; ")), where
    )


def speaks_of_m(text: str) -> bool:
    """Whether the second symbol is in the text."""
    return re.search(r"\bm\b", text) is not None


def draw_symbolic(seed: int) -> SymbolicMap:
    """The map that `seed` names."""
    return symbolic(Random(seed))


def symbolic_maps() -> st.SearchStrategy[SymbolicMap]:
    """Maps with one or two symbolic extents."""
    return st.builds(symbolic, st.randoms(use_true_random=False))


def instances(asked: SymbolicMap, extents: Sequence[int] = EXTENTS) -> Iterator[dict[str, int]]:
    """Values of the symbols that the condition admits and for which brute force is small: every extent, some of the
    pairs.
    """
    values = list(product(extents, repeat=len(asked.symbols)))
    if len(asked.symbols) > 1:
        values = sorted(Random(asked.text).sample(values, len(values)), key=lambda pair: max(pair) > 4)
    tried = 0
    for chosen in values:
        known = dict(zip(asked.symbols, chosen, strict=True))
        shape = concrete(asked, known)
        if min(shape) >= 1 and math.prod(shape) <= MOST_POINTS and holds(asked.where, known):
            yield known
            tried += 1
            if tried == PAIRS:
                return


def concrete(asked: SymbolicMap, known: Mapping[str, int]) -> tuple[int, ...]:
    """The shape with the symbols' values put in."""
    return tuple(int(eval(extent, {"__builtins__": {}, **known})) for extent in asked.shape)


def holds(where: str | None, known: Mapping[str, int]) -> bool:
    """Whether the condition is true of these values; a condition that traps is not."""
    if where is None:
        return True
    try:
        return bool(eval(where, {"__builtins__": {}, "min": min, "max": max, **known}))
    except ZeroDivisionError:
        return False


def report_of(asked: SymbolicMap) -> dict[str, Any]:
    """The report's JSON form. Raises LayoutproofError where the map is refused."""
    shape = parse_shape(", ".join(asked.shape) + ",")
    symbols = [variable for extent in shape for variable in free_variables(extent)]
    where = parse_condition(asked.where, symbols) if asked.where is not None else None
    return check_map(parse_index_map(asked.text, symbols=symbols), shape, where).to_dict()


def examine_symbolic(asked: SymbolicMap) -> tuple[list[Complaint], Mapping[str, str]]:
    """Complaints about the report, each instance tried; and the statuses it gave."""
    try:
        report = report_of(asked)
    except LayoutproofError as refusal:
        return judge_symbolic_refusal(asked, str(refusal)), {"injective": "refused"}
    complaints: list[Complaint] = []
    for known in instances(asked):
        complaints += [c for c in complaints_at(asked, report, known) if not c.kind.startswith("unknown")]
    statuses = {name: report[name]["status"] for name in ("injective", "bijective")}
    for name in statuses:
        if statuses[name] == "refuted" and not replays(asked, report[name]["counterexample"], name == "bijective"):
            complaints.append(
                Complaint(f"counterexample {name}", "one that can be replayed", str(report[name]["counterexample"]))
            )
        if statuses[name] == "vacuous" and any(True for _ in instances(asked)):
            complaints.append(Complaint(f"vacuous {name}", str(next(instances(asked))), str(report[name]["reason"])))
    return complaints, statuses


def complaints_at(asked: SymbolicMap, report: Mapping[str, Any], known: Mapping[str, int]) -> list[Complaint]:
    """What the report says wrongly of one instance."""
    try:
        true = oracle.truth(asked.text, concrete(asked, known), known)
    except ArithmeticError:
        return [
            Complaint("accepted trap", f"a refusal: division by zero at {dict(known)}", str(report["physical_shape"]))
        ]
    if true.negative is not None:
        return [
            Complaint(
                "accepted below zero", f"a refusal: {true.negative} at {dict(known)}", str(report["physical_shape"])
            )
        ]
    if report["injective"]["status"] == "vacuous":
        return []
    if true.box_cells > MOST_CELLS:
        return []
    if None in report["physical_shape"]:
        report = {**report, "physical_shape": list(true.shape or ()), "flattened_shape": list(true.flattened)}
    return judge(report, true, known)


def replays(asked: SymbolicMap, example: Mapping[str, Any] | None, allow_unreached: bool) -> bool:
    """Whether a counterexample, which names the symbols' values, is one."""
    if example is None or set(example.get("symbols", {})) != set(asked.symbols):
        return False
    known = dict(example["symbols"])
    if not holds(asked.where, known) or math.prod(concrete(asked, known)) > 2**20:
        return False
    return is_counterexample(example, oracle.truth(asked.text, concrete(asked, known), known), allow_unreached)


def judge_symbolic_refusal(asked: SymbolicMap, message: str) -> list[Complaint]:
    """Whether a refusal is deserved: some instance goes below zero or traps, or there is none. LP201 says honestly: not
    proved.
    """
    if "LP201" in message:
        return []
    named = {name: int(value) for name, value in re.findall(r"\b([nm]) = (\d+)", message)}
    tried = [
        *instances(asked, range(41)),
        *([named] if set(named) == set(asked.symbols) and holds(asked.where, named) else []),
    ]
    for known in tried:
        try:
            if oracle.truth(asked.text, concrete(asked, known), known).negative is not None:
                return []
        except ArithmeticError:
            return []
    return [Complaint("refused", "a report", message)] if tried else []
