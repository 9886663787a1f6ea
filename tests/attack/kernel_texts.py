"""Texts of rewrites for the attack on the kernel: right ones, and what makes them wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from random import Random

from layoutproof.ir.notations.rewrite_text import rewrite_text
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.text import expr_text
from tests.attack.campaign import nest_rewrite
from tests.attack.padded import padded_case
from tests.attack.programs import Generator

_TOKEN = re.compile(r"//|[<>=!]=|[-+*%<>]|\b\d+\b(?!\))|\b[a-zA-Z]\w*\b|-0\.0|\b\d+\.\d+\b")
_SWAPS = {"+": "-", "-": "+", "*": "+", "//": "%", "%": "//", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!="}
_WORDS = {"and": "or", "or": "and", "serial": "parallel", "grid": "grid", "min": "max", "max": "min", "Select": "max"}
_EXTRAS = (
    "{S} + {t}(0)", "{S} - {t}(0)", "{S} * {t}(1)", "{S} + {t}(-0.0)", "{S}", "T.max({S}, {t}(0))", "{t}(0)", "-{S}",
    "T.if_then_else({z} < 2, {S}, {t}(3))", "T.Select({z} >= 0, {S}, {t}(3))", "{S} + {t}(0) * {S}",
    "T.max({t}(0), {S})",
)  # fmt: skip
_LOAD = re.compile(r"\b[A-Za-z_]\w*\[[^\[\]]*\]")
_STORE = re.compile(r"\s+[A-Za-z_]\w*\[[^\[\]]*\] = ")
_VALUES = (
    "{v} * 1", "1 * {v}", "{v} - 0", "{v} + 0", "0 - {v}", "{v} / 2 * 2", "{v} * 2 / 2", "{v} + {v} - {v}",
    "{x} - {x} + {v}", "{v} / 1", "T.max({v}, {v})", "T.max({x}, {v})", "{v} * 2 - {v}",
    "T.if_then_else({x} == {x}, {v}, {v})", "T.if_then_else(not {x} < 0, {v}, {x})", "T.Select({x} > {v}, {v}, {x})",
    "{v} - -0.0", "{v} * -1 * -1",
)  # fmt: skip
_LAWS = (
    ("({} + {})", "({} + {})", (1, 0)), ("({} * {})", "({} * {})", (1, 0)), ("T.max({}, {})", "T.max({}, {})", (0, 1)),
    ("T.Select({} < {}, {}, {})", "T.Select({} > {}, {}, {})", (1, 0, 2, 3)),
    ("T.Select(i < 3, {}, {})", "T.Select(not (i < 3), {}, {})", (1, 0)),
)  # fmt: skip
_NEUTRAL = (("+", "-0.0"), ("+", "0"), ("-", "0"), ("*", "1"))


def right_rewrites(rng: Random) -> Iterator[Rewrite]:
    """Random rewrites, most of which are right, without end."""
    generator = Generator(rng)
    while True:
        made = ("padded", padded_case(rng).rewrite) if rng.random() < 0.2 else nest_rewrite(generator, rng)
        if made is not None and len(rewrite_text(made[1])) < 4000:
            yield made[1]


def damaged_text(text: str, rng: Random) -> str:
    """One token of a rewrite's text is another one, or a line stands twice, elsewhere, or not at all."""
    lines = text.split("\n")
    where = rng.randrange(len(lines))
    if rng.random() < 0.2:
        line = lines.pop(where)
        for _ in range(rng.choice([0, 1, 1, 2])):
            lines.insert(rng.randrange(max(where - 3, 0), min(where + 4, len(lines)) + 1), line)
        return "\n".join(lines)
    found = [m for m in _TOKEN.finditer(text) if m[0] in _SWAPS or m[0] in _WORDS or m[0].isdigit() or len(m[0]) < 3]
    if not found:
        return text[:-1]
    chosen = rng.choice(found)
    word = chosen[0]
    if word.isdigit():
        new = str(max(int(word) + rng.choice([-1, 1, 1, 2]), 0))
    else:
        new = _SWAPS.get(word) or _WORDS.get(word) or rng.choice(found)[0]
    return text[: chosen.start()] + new + text[chosen.end() :]


def with_let(text: str, rng: Random) -> str:
    """The text with a name for a load, bound in the line of its store or before, and used there or also later."""
    lines = text.split("\n")
    found = [(k, m) for k, line in enumerate(lines) for m in _LOAD.finditer(line.partition(" = ")[2])]
    stores = [(k, m[0]) for k, m in found if _STORE.match(lines[k])]
    if not stores:
        return text
    where, load = rng.choice(stores)
    for k in range(where, min(where + rng.choice([1, 1, 2, 4]), len(lines))):
        target, equals, value = lines[k].partition(" = ")
        lines[k] = target + equals + value.replace(load, "zlet")
    above = max(where - rng.choice([0, 0, 1, 2, 3]), 0)
    indent = lines[above][: -len(lines[above].lstrip()) or None]
    lines.insert(above, f"{indent}zlet = {load}")
    return "\n".join(lines)


def with_choice(text: str, rng: Random) -> str:
    """The text with a value that is chosen: by both sides or by one, the other way round, or by something else."""
    lines = text.split("\n")
    stores = [k for k, line in enumerate(lines) if _STORE.match(line)]
    if not stores:
        return text
    where = rng.choice(stores)
    target, _, value = lines[where].partition(" = ")
    for old, new in (("if_then_else", "Select"), ("Select", "if_then_else")):
        if f"T.{old}(" in value and rng.random() < 0.5:
            lines[where] = f"{target} = {value.replace(old, new)}"
            return "\n".join(lines)
    loads = _LOAD.findall(value)
    form = rng.choice(_VALUES).format(v=f"({value})", x=rng.choice(loads) if loads else f"({value})")
    lines[where] = f"{target} = {form}"
    return "\n".join(lines)


def with_extra(rewrite: Rewrite, text: str, rng: Random) -> str:
    """The text with a loop after all else that stores something to a buffer."""
    buffer = rng.choice(rewrite.new.buffers)
    names = [f"z{axis}" for axis in range(len(buffer.shape))]
    shape = ", ".join(expr_text(extent) for extent in buffer.shape)
    cell = f"{buffer.name}[{', '.join(names)}]"
    value = rng.choice(_EXTRAS).format(S=cell, t=f"T.{buffer.dtype}", z=rng.choice(names))
    return f"{text.rstrip()}\n    for {', '.join(names)} in T.grid({shape}):\n        {cell} = {value}\n"


def with_constant(rewrite: Rewrite, text: str, rng: Random) -> str:
    """The text with a temporary after all else, stored to by several statements of which some are never executed, and a
    loop that changes a buffer by what the temporary then has.
    """
    buffer = rng.choice(rewrite.new.buffers)
    names = ", ".join(f"z{axis}" for axis in range(len(buffer.shape)))
    operator, neutral = rng.choice(_NEUTRAL)
    lines = [f'zc = T.alloc_buffer((2,), "{buffer.dtype}")', f"zc[0] = T.{buffer.dtype}({neutral})"]
    for number in range(rng.randint(1, 3)):
        value = rng.choice((neutral, "0", "1", "2", "-0.0"))
        var, cell = f"zd{number}", rng.choice(("0", "0", "1"))
        if rng.random() < 0.7:
            lines.append(f"for {var} in range({rng.choice((0, 1, 3))}):")
            lines.append(f"    if {var} {rng.choice(('<', '>', '=='))} {rng.choice((0, 1, 5))}:")
            cell = f"        {rng.choice((cell, f'{var} % 2'))}"
        indent = cell[: -len(cell.lstrip())]
        lines.append(f"{indent}zc[{cell.lstrip()}] = T.{buffer.dtype}({value})")
    lines.append(f"for {names} in T.grid({', '.join(expr_text(extent) for extent in buffer.shape)}):")
    lines.append(f"    {buffer.name}[{names}] = {buffer.name}[{names}] {operator} zc[0]")
    return "\n".join([text.rstrip(), *(f"    {line}" for line in lines), ""])


def _replaced(names: Mapping[str, str], found: re.Match[str]) -> str:
    return names.get(found[0], found[0])


def with_cells(rng: Random) -> str:
    """A rewrite in which a temporary of a loop, or of the function, has other cells, and a value of them its operands
    the other way round; one operand may be another one.
    """
    count = rng.choice((2, 2, 3))
    leaves = [f"C[{k}]" for k in range(count)] * 3 + ["D[0]", "D[1]", "A[i]"]

    def tree(depth: int) -> tuple[str, str]:
        """An expression of both programs."""
        if depth == 0 or rng.random() < 0.15:
            leaf = rng.choice(leaves)
            return leaf, rng.choice(leaves) if rng.random() < 0.05 else leaf
        form, other, places = rng.choice(_LAWS)
        old, new = zip(*(tree(depth - 1) for _ in places), strict=True)
        if rng.random() < 0.5:
            return form.format(*old), form.format(*new)
        chosen = rng.choice((form, other)) if rng.random() < 0.2 else other
        return form.format(*old), chosen.format(*(new[k] for k in (places if rng.random() < 0.8 else range(len(new)))))

    old, new = tree(rng.choice((1, 1, 2)))
    order = rng.sample(range(count), count) if rng.random() < 0.4 else range(count)
    stores = [rng.choice(("A[i]", "D[0]", "A[i] * D[1]", "A[i] + D[0]")) for _ in range(count)]
    moved = {f"C[{k}]": f"C[{place}]" for k, place in enumerate(order)}
    texts = ["# functions: f, f"]
    for name, value, cells in (("before", old, {}), ("after", new, moved)):
        lines = [f"C[{k}] = {stored}" for k, stored in enumerate(stores)] + [f"B[i] = {value}"]
        lines = [_LOAD.sub(partial(_replaced, cells), line) for line in lines]
        alloc = f'C = T.alloc_buffer(({count},), "float32")'
        inside = rng.random() < 0.85
        texts += [
            "@T.prim_func(s_tir=True)", f'def {name}(A: T.Buffer((5,), "float32"), D: T.Buffer((2,), "float32"), '
            'B: T.Buffer((5,), "float32")):', '    T.func_attr({"tirx.noalias": True})',
            *([] if inside else [f"    {alloc}"]), "    for i in range(5):", *([f"        {alloc}"] if inside else []),
            *(f"        {line}" for line in lines), "",
        ]  # fmt: skip
    return "\n".join(texts)
