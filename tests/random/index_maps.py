"""Random index maps, as text with a shape: the layouts people write, the same with mistakes in them, and arbitrary
arithmetic.

Each category draws from a `Random`, so that a seed names a map (`draw_map`) and hypothesis can shrink one
(`index_maps`). About half of the maps are injective. Those with a symbolic extent are in `tests.random.symbolic_maps`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from hypothesis import strategies as st

from tests.oracle import maps as oracle

LETTERS = "ijkxyz"
SMALL = 4096
MIDSIZE = 2**20


@dataclass(frozen=True)
class RandomMap:
    """A map's text, the shape it is asked about, and what kind of map it is."""

    text: str
    shape: tuple[int, ...]
    category: str

    def __str__(self) -> str:
        return f"{self.text}  on {list(self.shape)}  ({self.category})"


@dataclass(frozen=True)
class Draft:
    """A map before it is written out: the outputs and extents over the names `i, j, ...`."""

    outputs: list[str]
    shape: list[int]

    @property
    def names(self) -> list[str]:
        """The inputs."""
        return list(LETTERS[: len(self.shape)])


def factor(rng: Random) -> int:
    """A small tile size: mostly 2, 3, 4, 8, sometimes others, 1 among them."""
    return rng.choice([2, 2, 3, 4, 4, 4, 5, 6, 7, 8, 8, 1, 16])


def shifted(rng: Random, term: str) -> str:
    """The term, or the term with a small offset in front."""
    return f"({term} + {rng.randint(1, 9)})" if rng.random() < 0.5 else term


def digits(rng: Random, term: str, radices: Sequence[int]) -> list[str]:
    """The mixed-radix digits of a term, most significant first; the first has no upper end."""
    outputs = []
    for position in range(len(radices) + 1):
        below = math.prod(radices[position:])
        quotient = f"{term} // {below}" if below > 1 or rng.random() < 0.1 else term
        wrapped = f"({quotient})" if "//" in quotient else quotient
        outputs.append(quotient if position == 0 else f"{wrapped} % {radices[position - 1]}")
    return outputs


def split(rng: Random) -> Draft:
    """Splits of one to three axes with offsets, two-way or more; sometimes with a wrong radix or without a digit."""
    outputs: list[str] = []
    shape = []
    for name in LETTERS[: rng.choice([1, 1, 1, 2, 2, 3])]:
        radices = [factor(rng) for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3]))]
        outputs += digits(rng, shifted(rng, name), radices)
        whole = math.prod(radices)
        shape.append(
            rng.randint(1, max(2, rng.choice([1, 2, 3]) * whole)) if rng.random() < 0.7 else whole * rng.randint(1, 3)
        )
    if rng.random() < 0.25 and len(outputs) > 1:
        outputs.pop(rng.randrange(len(outputs)))
    if rng.random() < 0.2:
        place = rng.randrange(len(outputs))
        outputs[place] = (
            outputs[place].replace("// 4", "// 2").replace("% 4", f"% {factor(rng)}").replace("// 8", "// 4")
        )
    if rng.random() < 0.5:
        rng.shuffle(outputs)
    return Draft(outputs, shape)


def rotation(rng: Random) -> Draft:
    """`(i + c*j) % k` beside what it was rotated by, k often the extent."""
    n, m = rng.randint(1, 12), rng.randint(1, 12)
    k = rng.choice([n, n, n, n + rng.randint(1, 4), max(1, n - 1), factor(rng)])
    by = rng.choice(
        ["j", "j", "2*j", "3*j", f"(j // {factor(rng)})", f"(j % {factor(rng)})", "j - 1", "-j", str(rng.randint(0, 9))]
    )
    term = f"i - {by}" if rng.random() < 0.3 and not by.startswith("-") else f"i + {by}"
    outputs = [f"({term}) % {k}"] + (["j"] if rng.random() < 0.85 else [])
    rng.shuffle(outputs)
    return Draft(outputs, [n, m])


def multiplicative(rng: Random) -> Draft:
    """`(a*i + b) % m`, coprime or not, on a domain near m; sometimes with the quotient beside it."""
    m, a, b = rng.randint(1, 32), rng.randint(-9, 40), rng.choice([0, 0, rng.randint(-5, 20)])
    n = rng.choice([m, m, m, max(1, m - rng.randint(1, 3)), m + rng.randint(1, 3)])
    term = f"{a}*i" if b == 0 else f"{a}*i + {b}" if b > 0 else f"{a}*i - {-b}"
    outputs = [f"({term}) % {m}"]
    if rng.random() < 0.3:
        outputs.append(f"({term}) // {m}" if a >= 0 and b >= 0 else f"i // {m}")
    return Draft(outputs, [n])


def swizzle(rng: Random) -> Draft:
    """XOR, masks and shifts: of axes, of digits, with constants; powers of two mostly."""
    n = rng.choice([4, 8, 8, 16, 32, rng.randint(1, 20)])
    m = rng.choice([4, 8, 8, 16, rng.randint(1, 20)])
    if rng.random() < 0.45:
        return Draft(swizzle_of_one(rng, n), [n * rng.choice([1, 1, 2])])
    k, c = rng.choice([2, 4, 8]), rng.randint(0, 15)
    bits = k.bit_length() - 1
    flat = f"(i * {m} + j)"
    forms = f"""
        i; j ^ i                                    i; j ^ (i % {k})                        i; (j ^ i) % {m}
        i; j ^ ((i & {k - 1}) << {bits})            i; j ^ ((i & {k - 1}) << 1)             i; j ^ (i // {k})
        (i & {k - 1}) | (j << {bits}); i >> {bits}  i & j; i | j                            i ^ j; i & j
        {flat} ^ (i % {k})                          i; (j // {k}) ^ (i % {k}); j % {k}      i ^ {c}; j ^ {c // 2}
        ({flat} ^ ({flat} >> {bits})) & {rng.choice([7, 15, 31, 63, 127, 255])}             i ^ j; j
        i ^ j                                       i | j; j                                (i << {bits}) + j
        (i << {bits}) ^ j                           i ^ (2*j); j
        i & {k - 1}; i >> {bits}; i ^ j
        (-i - 1) & 15; j                            (i - j) & 15; j                         i; (j + i) & 7
    """
    outputs = one_of(rng, forms)
    if rng.random() < 0.2:
        rng.shuffle(outputs)
    return Draft(outputs, [n, m])


def swizzle_of_one(rng: Random, n: int) -> list[str]:
    """Outputs over one axis of `n`: Gray codes, bit reversals, masks, XOR with constants and with other digits."""
    k, c = rng.choice([2, 4, 8]), rng.randint(0, 15)
    bits = k.bit_length() - 1
    forms = f"""
        i ^ (i >> 1)                            i ^ (i >> 2) ^ (i >> 1)          i // {k}; (i // {k}) ^ (i % {k})
        i // {k}; ((i // {k}) % {k}) ^ (i % {k})    i ^ {c}
        (i ^ {c}) & {2 * n - 1 if n & (n - 1) == 0 else 15}
        i & {k - 1}; i >> {bits}                (i >> {bits}) | ((i & {k - 1}) << 4)    (i + {c}) ^ (i % {k})
        ((i & 1) << 3) | ((i & 2) << 1) | ((i & 4) >> 1) | ((i & 8) >> 3) | ((i >> 4) << 4)
        i ^ (i << 1)                            i | {c}                          (3*i) ^ {c}
        i & {c}; i & ({c} ^ 255)                i - (i & {c}); i & {c}           (i - {c}) & 15
        (i * 5) ^ (i >> {bits})                 i - (i >> 1)                     (i ^ {c}) // {k}; (i ^ {c}) % {k}
    """
    return one_of(rng, forms)


def one_of(rng: Random, forms: str) -> list[str]:
    """The outputs of one form; forms stand apart by two blanks or a line break, outputs by a semicolon."""
    return rng.choice(re.split(r"\s{2,}", forms.strip())).split("; ")


def linear(names: Sequence[str], coefficients: Sequence[int], offset: int) -> str:
    """`a*i + b*j + c`, in usual notation."""
    terms = [name if a == 1 else f"{a}*{name}" for name, a in zip(names, coefficients, strict=True) if a]
    return " + ".join([*terms, str(offset)] if offset or not terms else terms)


def fusion(rng: Random) -> Draft:
    """One row-major offset with strides near the right ones; sometimes re-split into tiles of another size, or permuted
    digits.
    """
    shape = [rng.randint(1, 7) for _ in range(rng.choice([1, 2, 2, 3]))]
    strides, stride = [0] * len(shape), rng.choice([1, 1, 1, 2])
    for axis in rng.sample(range(len(shape)), len(shape)):
        strides[axis] = stride + rng.choice([0, 0, 0, 0, 1, -1, 2])
        stride *= shape[axis]
    flat = linear(LETTERS[: len(shape)], strides, rng.choice([0, 0, 0, rng.randint(1, 5)]))
    k = factor(rng)
    forms = f"""
        {flat}    {flat}    ({flat}) // {k}; ({flat}) % {k}
        (({flat}) % {k}) * {stride // k + 1} + ({flat}) // {k}
        (({flat}) // 4) * 4 + ({flat} + 1) % 4
    """
    return Draft(one_of(rng, forms), shape)


def skew(rng: Random) -> Draft:
    """Sums and differences of axes, unimodular or not, kept above zero by an offset."""
    n, m = rng.randint(1, 8), rng.randint(1, 8)
    a, b, c, d = (rng.choice([0, 1, 1, 1, 2, -1, -2, 3]) for _ in range(4))
    low = [sum(min(0, x * (extent - 1)) for x, extent in zip(row, (n, m), strict=True)) for row in ((a, b), (c, d))]
    rows = [
        linear("ij", row, -bottom + rng.choice([0, 0, 0, 1, -1]))
        for row, bottom in zip(((a, b), (c, d)), low, strict=True)
    ]
    return Draft(rows, [n, m])


def remainders(rng: Random) -> Draft:
    """`[i % a, i % b]`: a bijection where a and b are coprime and the extent is their product."""
    a, b = rng.randint(1, 9), rng.randint(1, 9)
    n = rng.choice([a * b, a * b, math.lcm(a, b), a * b + 1, rng.randint(1, 2 * a * b)])
    return Draft([f"{shifted(rng, 'i')} % {a}", f"{rng.choice(['i', 'i', '2*i', '(i // 2)'])} % {b}"], [n])


def permutation(rng: Random) -> Draft:
    """Axes in another order, some reversed, with constants and duplicates put in."""
    shape = [rng.randint(1, 6) for _ in range(rng.randint(1, 4))]
    tops = [n - 1 + rng.choice([0, 0, 0, 1]) for n in shape]
    outputs = [
        name if rng.random() < 0.7 else f"{top} - {name}" for name, top in zip(LETTERS[: len(shape)], tops, strict=True)
    ]
    rng.shuffle(outputs)
    for extra in ("0", str(rng.randint(0, 3)), rng.choice(outputs)):
        if rng.random() < 0.15:
            outputs.insert(rng.randint(0, len(outputs)), extra)
    if rng.random() < 0.2 and len(outputs) > 1:
        outputs.pop()
    return Draft(outputs, shape)


def window(rng: Random) -> Draft:
    """Sliding windows `a*i + j`, overlapping or not, sometimes tiled."""
    n, m, a, k = rng.randint(1, 10), rng.randint(1, 6), rng.randint(1, 6), factor(rng)
    flat = linear("ij", [a, 1], rng.choice([0, 0, 2]))
    forms = [
        [flat],
        [flat, "j"],
        ["i", flat],
        [f"({flat}) // {k}", f"({flat}) % {k}"],
        [f"({flat}) // {k}", f"({flat}) % {k}", f"j % {k}"],
    ]
    return Draft(list(rng.choice(forms)), [n, m])


def nest(rng: Random, names: Sequence[str], depth: int) -> str:
    """A random tree of `// % + - *` with small constants, negative ones included."""
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(names) if rng.random() < 0.85 else str(rng.randint(-3, 9))
    left = nest(rng, names, depth - 1)
    kind = rng.choice("++--**//%%")
    if kind in "+-":
        return f"({left} {kind} {nest(rng, names, depth - 1)})"
    value = rng.choice([2, 3, 4, 5, 8, 2, 4, 6, 7, -1, -2, -3, -4])
    return f"({left} {'//' if kind == '/' else kind} {value})"


def nests(rng: Random) -> Draft:
    """Arbitrary quasi-affine arithmetic, mostly lifted or wrapped so that it stays above zero."""
    rank = rng.choice([1, 1, 2, 2, 3])
    shape = [rng.randint(1, rng.choice([4, 8, 24 // rank + 2])) for _ in range(rank)]
    names = LETTERS[:rank]
    outputs = [nest(rng, names, rng.randint(1, 4)) for _ in range(rng.choice([1, 2, 2, 3]))]
    outputs = [
        rng.choice([o, f"{o} % {factor(rng)}", f"{o} % {rng.randint(2, 12)}", f"{o} + {rng.randint(1, 40)}"])
        for o in outputs
    ]
    if rng.random() < 0.5:
        outputs.append(rng.choice(names))
    return Draft(outputs, shape)


def choice(rng: Random) -> Draft:
    """min, max, select with conditions, truncated division: pieces glued together."""
    n, m, k = rng.randint(1, 14), rng.randint(1, 8), rng.choice([2, 3, 4, 5])
    c = rng.randint(0, n)
    conditions = f"""
        i < {c}    i % 2 == {rng.randint(0, 1)}    i >= {c} and j != 1    i < j    not i == {c}
        i // {k} == 0 or j >= 2
        not (i < {c} or j % 2 == 1) and i != 3
    """
    condition = one_of(rng, conditions)[0]
    forms = f"""
        min(i, {c}); max(i, {c})                          min(i, {c}); max(i - {c}, 0)
        min(i, j); max(i, j)
        select({condition}, i, {n} - 1 + {c} - i); j      select({condition}, i, i + {n}); j
        select({condition}, 2*i, 2*i + 1); j
        truncdiv(i - {c}, {k}) + {c}; truncmod(i - {c}, {k}) + {k - 1}; j
        truncdiv(i, {k}); truncmod(i, {k}); j
        truncdiv(i + {c}, -{k}) + 9; truncmod(i + {c}, -{k}); j
        truncdiv({c} - i, -{k}) + {c}; truncmod({c} - i, -{k}) + {k - 1}; j
        max(i, j); min(i, j); select(i < j, 0, 1)         if_then_else({condition}, i, {n - 1} - i); j
        select(i < {c}, i // {k}, i); select(i < {c}, i % {k}, 0); j                                 abs(i - j); i + j
        max(i - j, 0); max(j - i, 0); min(i, j)           min(i + {c}, {n + 2}); j
        (i + max(j, {k})) % {n}; j
        select(i < {c}, min(i, j), max(i, j)); i; j % {k}    max(min(i, {c}), 2); i - min(i, 2)
    """
    return Draft(one_of(rng, forms), [n, m])


def tiles(rng: Random) -> Draft:
    """Tiles of tiles, as weights are stored: outer blocks, then digits of both axes interleaved."""
    inner, outer = rng.choice([2, 4]), rng.choice([2, 4, 8])
    whole = inner * outer
    o, i = rng.randint(1, 2 * whole), rng.randint(1, 2 * outer)
    outputs = [f"j // {outer}", f"i // {whole}", f"(i % {whole}) // {inner}", f"j % {outer}", f"i % {inner}"]
    if rng.random() < 0.3:
        outputs[2] = f"(i // {inner}) % {rng.choice([outer, outer, outer + 1, inner])}"
    if rng.random() < 0.3:
        outputs = [outputs[0], outputs[1], f"{outputs[2]} * {outer} + {outputs[3]}", outputs[4]]
    return Draft(outputs, [o, i])


def nonlinear(rng: Random) -> Draft:
    """Products and quotients of axes and variable shifts: outside linear arithmetic, decided all the same."""
    forms = """
        i * j            i * j; i + j    i * (i + 1) // 2 + j    i // (j + 1); i % (j + 1); j    i * i
        i * i % 7; j
        i << j           i << j; j       i >> j; i               (i + j) % (j + 3); j            i * j; i; j
        (i * j) % 5 + i; j
        i % (j + 1); j   (i + 1) * (j + 1); j                    i * i + i + j; j * j            i // (j + 2); i; j
    """
    return Draft(one_of(rng, forms), [rng.randint(1, 8), rng.randint(1, 8)])


def joined(rng: Random) -> Draft:
    """Two independent maps side by side, their outputs interleaved."""
    first, second = (rng.choice(SIMPLE)(rng) for _ in range(2))
    free = LETTERS[len(first.shape) :]
    if len(free) < len(second.shape):
        return first
    renamed = dict(zip(second.names, free, strict=False))
    outputs = first.outputs + [
        re.sub(r"\b[a-z]\b", lambda word: renamed[word.group()], output) for output in second.outputs
    ]
    rng.shuffle(outputs)
    return Draft(outputs, first.shape + second.shape)


def midsize(rng: Random) -> Draft:
    """Usual layouts on up to a million points."""
    k, w = rng.choice([4, 8, 16]), rng.choice([64, 100, 128, 255])
    forms = [
        (["i", f"j // {k}", "k", f"j % {k}"], [rng.randint(1, 8), rng.randint(30, 130), rng.randint(20, 60)]),
        ([f"(i * {w} + j) // 64", f"(i * {w} + j) % 64"], [rng.randint(100, 900), w]),
        ([f"i // {k}", f"j // {k}", f"i % {k}", f"j % {k}"], [rng.randint(100, 900), rng.randint(100, 900)]),
        (["i", f"(j + i) % {w}"], [rng.randint(100, 900), w + rng.choice([0, 0, 0, 1])]),
        (["i", f"(j // 8) ^ (i % {k})", "j % 8"], [rng.randint(100, 500), 64]),
        ([f"(i + {k}) // 32", f"((i + {k}) // 4) % 8", f"(i + {k}) % 4"], [rng.randint(10_000, 1_000_000)]),
        (["(i % 128) * 1024 + i // 128"], [rng.choice([1 << 17, (1 << 17) - 1, (1 << 17) + 1])]),
        ([f"i % {k * k}", f"i % {k * k - 1}"], [k * k * (k * k - 1) + rng.choice([0, 1])]),
    ]
    outputs, shape = rng.choice(forms)
    return Draft(list(outputs), list(shape))


Category = Callable[[Random], Draft]
SIMPLE: tuple[Category, ...] = (split, rotation, multiplicative, swizzle, fusion, skew, remainders, permutation, choice)
CATEGORIES: dict[str, Category] = {f.__name__: f for f in (*SIMPLE, window, nests, tiles, nonlinear, joined, midsize)}
WEIGHTS = {"split": 3, "swizzle": 3, "nests": 5, "joined": 2, "fusion": 2, "midsize": 0.1, "nonlinear": 0.7}


def written(rng: Random, draft: Draft, category: str) -> RandomMap:
    """The draft as text, with separators between some axes now and then."""
    entries = list(draft.outputs)
    if len(entries) > 1 and rng.random() < 0.2:
        for place in sorted(rng.sample(range(1, len(entries)), rng.randint(1, min(2, len(entries) - 1))), reverse=True):
            entries.insert(place, "AXIS_SEPARATOR")
    return RandomMap(f"lambda {', '.join(draft.names)}: [{', '.join(entries)}]", tuple(draft.shape), category)


def fits(candidate: RandomMap) -> bool:
    """Whether brute force can judge the map: a small or middle-sized box; negative images only sometimes."""
    limit = MIDSIZE if candidate.category == "midsize" else SMALL
    if math.prod(candidate.shape) > limit:
        return False
    known = oracle.truth(candidate.text, candidate.shape)
    return known.shape is None or known.box_cells <= 4 * limit


def draw(rng: Random, category: str) -> RandomMap:
    """A map of one category that brute force can judge; images below zero are mostly drawn again."""
    while True:
        candidate = written(rng, CATEGORIES[category](rng), category)
        if fits(candidate) and (oracle.truth(candidate.text, candidate.shape).negative is None or rng.random() < 0.1):
            return candidate


def draw_map(seed: int) -> RandomMap:
    """The map that `seed` names; the same one on every machine."""
    rng = Random(seed)
    names = list(CATEGORIES)
    return draw(rng, rng.choices(names, [WEIGHTS.get(name, 1) for name in names])[0])


def index_maps(*categories: str) -> st.SearchStrategy[RandomMap]:
    """Maps of the categories named, all small ones by default."""
    names = list(categories) if categories else [name for name in CATEGORIES if name != "midsize"]

    def build(rng: Random, category: str) -> RandomMap:
        return written(rng, CATEGORIES[category](rng), category)

    return st.builds(build, st.randoms(use_true_random=False), st.sampled_from(names)).filter(fits)
