"""Random small programs as script text, many of them wrong: out of bounds, read before written, racing, trapping.

Extents stay small, so that the reference interpreter meets every fault; a seed names a program.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from random import Random

from tests.random.drafts import Draft

PARAMETERS = ("A", "B")


@dataclass
class _Draft(Draft):
    shapes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    symbolic: bool = False
    care: float = 0.8


def random_program(seed: int, *, symbolic: bool = False) -> str:
    """One function `main` of parameters A and B (float32) and I (int32, data); a temporary T in most programs."""
    rng = Random(seed)
    names = ["n", "m"] if symbolic else []
    shapes = {name: _shape(rng, names) for name in ("A", "B", "T")}
    if symbolic:
        # Every symbol stands in a shape, so that arguments tell its value.
        shapes["A"], shapes["B"] = ("n", *shapes["A"][1:]), ("m", *shapes["B"][1:])
    layouts = "" if symbolic else _layouts(rng, shapes)
    draft = _Draft(rng, shapes=shapes, symbolic=symbolic, care=rng.choice((0.8, 0.97)))
    first, second = (_quoted(f"({', '.join(shapes[name])},)") for name in PARAMETERS)
    draft.emit(0, "@T.prim_func")
    draft.emit(
        0,
        f'def main(A: T.Buffer({first}, "float32"), B: T.Buffer({second}, "float32"), I: T.Buffer((6,), "int32")):',
    )
    if symbolic:
        draft.emit(1, "n, m = T.int32(), T.int32()")
    draft.emit(1, f'T.func_attr({{"tirx.noalias": True{layouts}}})')
    draft.emit(1, f"T_ = T.alloc_buffer(({', '.join(shapes['T'])},))")
    if not symbolic and rng.random() < 0.3:
        # A second view of the temporary, which may promise more than there is.
        size = prod(int(extent) for extent in shapes["T"]) + rng.choice((0, 0, 1))
        shapes["V"] = rng.choice(((str(size),), ("2", str(size // 2 + 1))))
        draft.emit(1, f'V_ = T.decl_buffer(({", ".join(shapes["V"])},), "float32", data=T_.data)')
    for _ in range(rng.randint(1, 3)):
        _nest(draft, 1)
    return draft.text


def _layouts(rng: Random, shapes: dict[str, tuple[str, ...]]) -> str:
    """Layout records for some buffers, whose shapes become those of the layout, flattened or not."""
    records = []
    for name, data in (("A", "A_data"), ("T", "T__data")):
        if rng.random() < 0.75:
            continue
        logical, tile = rng.randint(1, 9), rng.choice((2, 3, 4))
        rows = -(-logical // tile)
        contracts = ("None", "None", '"undef"', '"T.float32(0)"')
        steps = [
            f'{{"index_map": "lambda i: [i//{tile}, i%{tile}]", "shape": [{rows}, {tile}], '
            f'"contract": {rng.choice(contracts)}}}'
        ]
        shape = (rows, tile)
        if rng.random() < 0.4:
            shape = (tile, rows + rng.randint(0, 1))
            steps.append(
                f'{{"index_map": "lambda i, j: [j, i]", "shape": {list(shape)}, "contract": {rng.choice(contracts)}}}'
            )
        records.append(f'"{data}": {{"logical_shape": [{logical}], "steps": [{", ".join(steps)}]}}')
        shapes[name] = tuple(map(str, shape)) if rng.random() < 0.6 else (str(prod(shape)),)
    return f', "layoutproof.layout": {{{", ".join(records)}}}' if records else ""


def _quoted(shape: str) -> str:
    return "".join(f'"{c}"' if c in "nm" else c for c in shape)


def _shape(rng: Random, names: list[str]) -> tuple[str, ...]:
    extents = [*map(str, (1, 2, 3, 4, 5, 6)), *names, *names, *names]
    return tuple(rng.choice(extents) for _ in range(rng.choice((1, 1, 2))))


def _nest(draft: _Draft, depth: int) -> None:
    rng = draft.rng
    before = len(draft.loops)
    for _ in range(rng.randint(1, 3)):
        name = draft.name("i")
        pool = [e for shape in draft.shapes.values() for e in shape]
        extent = rng.choice(pool) if rng.random() < 0.8 else str(rng.randint(1, 6))
        if draft.loops and rng.random() < 0.08:
            extent = f"{draft.loops[-1][0]} + 1"
        kind = rng.choices(("range", "T.serial", "T.parallel", "T.vectorized"), (8, 2, 1, 0.5))[0]
        draft.emit(depth, f"for {name} in {kind}({extent}):")
        draft.loops.append((name, extent))
        depth += 1
    if rng.random() < 0.35:
        _block(draft, depth, draft.loops[before:])
    else:
        for _ in range(rng.randint(1, 2)):
            _statement(draft, depth)
    del draft.loops[before:]


def _block(draft: _Draft, depth: int, loops: list[tuple[str, str]]) -> None:
    """A block over the innermost loops: spatial and reduction variables in any order, mostly with an init, sometimes
    with a guard.
    """
    rng = draft.rng
    draft.count += 1
    if rng.random() < 0.2:
        draft.emit(depth, f"if {_condition(draft)}:")
        depth += 1
    draft.emit(depth, f'with T.block("b{draft.count}"):')
    depth += 1
    if rng.random() < 0.3:
        draft.emit(depth, f"T.where({_condition(draft)})")
    spatial: list[tuple[str, str]] = []
    every: list[tuple[str, str]] = []
    for name, extent in loops:
        kind = rng.choice(("spatial", "reduce"))
        domain = extent if rng.random() < 0.9 else str(rng.randint(1, 6))
        draft.emit(depth, f"v{name} = T.axis.{kind}({domain}, {name})")
        every.append((f"v{name}", extent))
        if kind == "spatial":
            spatial.append((f"v{name}", extent))
    outer, draft.loops = draft.loops, spatial
    target = rng.choice(("B", "T", "T"))
    cell = _access(draft, target)
    if rng.random() < 0.75:
        draft.emit(depth, "with T.init():")
        draft.emit(depth + 1, f"{cell} = T.float32(0)")
    draft.loops = every
    draft.emit(depth, f"{cell} = {cell} + {_value(draft)}")
    draft.loops = outer


def _statement(draft: _Draft, depth: int) -> None:
    rng = draft.rng
    roll = rng.random()
    if roll < 0.25:
        draft.emit(depth, f"if {_condition(draft)}:")
        _store(draft, depth + 1)
        if rng.random() < 0.3:
            draft.emit(depth, "else:")
            _store(draft, depth + 1)
    elif roll < 0.35:
        draft.count += 1
        draft.emit(depth, f"x{draft.count}: T.int32 = {_index(draft)}")
        draft.loops.append((f"x{draft.count}", "4"))
        _store(draft, depth)
        draft.loops.pop()
    else:
        _store(draft, depth)


def _store(draft: _Draft, depth: int) -> None:
    target = draft.rng.choice(("B", "T", "T", "T", "A", *(("V",) if "V" in draft.shapes else ())))
    if draft.rng.random() < 0.1:
        draft.emit(depth, f"{_vector(draft, target)} = {_vector(draft, draft.rng.choice(PARAMETERS))}")
        return
    draft.emit(depth, f"{_access(draft, target)} = {_value(draft)}")


def _access(draft: _Draft, name: str) -> str:
    indices = ", ".join(_coordinate(draft, extent) for extent in draft.shapes[name])
    return f"{name}_[{indices}]" if name in ("T", "V") else f"{name}[{indices}]"


def _vector(draft: _Draft, name: str) -> str:
    """Two lanes of a buffer, along its last axis."""
    *outer, last = draft.shapes[name]
    ramp = f"T.ramp({_coordinate(draft, last)}, {draft.rng.choice((1, 1, 2, 0, -1))}, 2)"
    if draft.rng.random() < 0.3 and last.isdigit() and int(last) > 1:
        ramp = f"T.ramp({draft.rng.randint(0, int(last) - 2)}, 1, 2)"
    indices = ", ".join((*(_coordinate(draft, extent) for extent in outer), ramp))
    return f"{name}_[{indices}]" if name in ("T", "V") else f"{name}[{indices}]"


def _coordinate(draft: _Draft, extent: str) -> str:
    """Mostly an index that fits: a loop of this extent where there is one."""
    rng = draft.rng
    fitting = [name for name, size in draft.loops if size == extent]
    if fitting and rng.random() < draft.care:
        return rng.choice(fitting)
    if rng.random() < draft.care - 0.3:
        return f"({_index(draft)}) % {extent}"
    if rng.random() < 0.15:
        return (
            _loaded(draft)
            if rng.random() < 0.5
            else f"T.min(T.max({_loaded(draft)}, 0), {rng.choice((extent, f'{extent} - 1'))})"
        )
    return _index(draft)


def _loaded(draft: _Draft) -> str:
    return f"I[{draft.rng.randint(0, 5)}]" if draft.rng.random() < 0.5 else f"I[({_index(draft)}) % 6]"


def _index(draft: _Draft) -> str:
    rng = draft.rng
    names = [name for name, _ in draft.loops] + (["n", "m"] if draft.symbolic else [])

    def forms(term: str, other: str) -> tuple[str, ...]:
        number = rng.randint(1, 4)
        return (
            f"({term} + {other})", f"({term} - {other})", f"({term} * {number})", f"({term} // {number})",
            f"({term} % {number})",
            f"T.min({term}, {other})", f"T.max({term}, {other})", f"({term} + {other})",
            f"T.truncmod({term}, {number})",
            f"({term} // {other if rng.random() < 0.3 else number})",
        )  # fmt: skip

    return draft.arithmetic(names, "0", (0, 0, 1, 1, 2), forms, 0.6)


def _condition(draft: _Draft) -> str:
    rng = draft.rng
    if rng.random() < 0.1:
        return f"{_loaded(draft)} < {rng.choice(('3', _index(draft)))}"
    return draft.comparison(lambda: _index(draft), ("<", "<=", "==", "!=", ">="))


def _value(draft: _Draft) -> str:
    rng = draft.rng
    roll = rng.random()
    if roll < 0.25:
        return "T.float32(1)"
    read = _access(draft, rng.choice(("A", "A", "B", "T", *(("V", "V") if "V" in draft.shapes else ()))))
    if roll < 0.45:
        return f"T.if_then_else({_condition(draft)}, {read}, T.float32(0))"
    return read if roll < 0.8 else f"{read} + {_access(draft, rng.choice(('A', 'B', 'T')))}"
