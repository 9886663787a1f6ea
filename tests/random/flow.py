"""Random programs without faults whose flow of values is intricate: reductions with inits, guards and shared results,
conditions on data, scatters and gathers, lets that load, temporaries inside loops, vectors, views, lazy choices,
symbolic extents.

Values are made so that mixing up two sources shows in a result. A seed names a program.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.random.drafts import Draft


@dataclass
class _Draft(Draft):
    sizes: tuple[str, str] = ("n", "m")
    buffers: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of floats
    values: list[str] = field(default_factory=list)  # lets of floats


def random_flow_program(seed: int, *, symbolic: bool = False) -> str:
    """One function `main` over parameters A [n, m], B [m] and C [n, m] of floats and I [m] of integers."""
    rng = Random(seed)
    n, m = ("n", "m") if symbolic else (str(rng.randint(1, 4)), str(rng.randint(1, 5)))
    draft = _Draft(rng, sizes=(n, m))
    draft.buffers = {"A": (n, m), "B": (m,), "C": (n, m)}
    quoted = [f'"{s}"' if symbolic else s for s in (n, m)]
    draft.emit(0, "@T.prim_func")
    shapes = {"A": quoted, "B": quoted[1:], "C": quoted}
    parameters = ", ".join(f'{name}: T.Buffer(({", ".join(shape)},), "float32")' for name, shape in shapes.items())
    draft.emit(0, f'def main({parameters}, I: T.Buffer(({quoted[1]},), "int32")):')
    if symbolic:
        draft.emit(1, "n, m = T.int32(), T.int32()")
    draft.emit(1, 'T.func_attr({"tirx.noalias": True})')
    if symbolic:
        draft.emit(1, "T.evaluate(T.assume(n >= 1 and m >= 1))")
    if rng.random() < 0.6:
        draft.emit(1, f"T_ = T.alloc_buffer(({n}, {m}))")
        _fill(draft, 1, "T_", (n, m))
        draft.buffers["T_"] = (n, m)
        if rng.random() < 0.4 and not symbolic:
            draft.emit(1, f'V_ = T.decl_buffer(({int(n) * int(m)},), "float32", data=T_.data)')
            draft.buffers["V_"] = (str(int(n) * int(m)),)
    for _ in range(rng.randint(1, 3)):
        _statement(draft, 1, 3)
    return draft.text


def _fill(draft: _Draft, depth: int, name: str, shape: tuple[str, ...]) -> None:
    outer = list(draft.loops)
    for extent in shape:
        var = draft.name("f")
        draft.emit(depth, f"for {var} in range({extent}):")
        draft.loops.append((var, extent))
        depth += 1
    draft.emit(
        depth, f"{name}[{', '.join(v for v, _ in draft.loops[len(outer) :])}] = T.float32({draft.rng.randint(2, 9)}.25)"
    )
    draft.loops = outer


def _statement(draft: _Draft, depth: int, deepest: int) -> None:
    choices = [_store, _store, _vector]
    if deepest > 0:
        choices += [_loop, _loop, _loop, _reduction, _reduction, _branch, _let, _temporary]
    draft.rng.choice(choices)(draft, depth, deepest)


def _loop(draft: _Draft, depth: int, deepest: int) -> None:
    rng = draft.rng
    var, extent = draft.name("i"), rng.choice((*draft.sizes, *draft.sizes, "2", "3"))
    start = rng.choice(("0", "0", "0", "1"))
    draft.emit(depth, f"for {var} in {f'range({extent})' if start == '0' else f'range(1, {extent})'}:")
    draft.loops.append((var, extent))
    for _ in range(rng.randint(1, 2)):
        _statement(draft, depth + 1, deepest - 1)
    draft.loops.pop()


def _reduction(draft: _Draft, depth: int, deepest: int) -> None:
    """A block with an init over two or three loops in any order, some of the reduction, results now and then shared
    between loops.
    """
    rng = draft.rng
    loops = [(draft.name("r"), rng.choice((*draft.sizes, "2", "3"))) for _ in range(rng.randint(1, 3))]
    kinds = {var: rng.choice("SSRRN") for var, _ in loops}
    before, conditions = list(draft.loops), 0
    for var, extent in loops:
        draft.emit(depth, f"for {var} in range({extent}):")
        draft.loops.append((var, extent))
        depth += 1
        if rng.random() < 0.2 and conditions < 1:
            draft.emit(depth, f"if {_index_condition(draft)}:")
            depth, conditions = depth + 1, conditions + 1
    if rng.random() < 0.15:
        _store(draft, depth, 0)
    draft.emit(depth, f'with T.block("{draft.name("b")}"):')
    depth += 1
    inner, all_inner = list[tuple[str, str]](), list[tuple[str, str]]()
    for var, extent in loops:
        if kinds[var] == "N":
            continue
        binding = var
        if kinds[var] == "S" and rng.random() < 0.25:
            binding = rng.choice((f"{var} // 2", f"{var} % 2", f"{var} * 2 % 3"))
        domain = extent if binding == var or binding.endswith("// 2") else "3"
        draft.emit(depth, f"v{var} = T.axis.{'spatial' if kinds[var] == 'S' else 'reduce'}({domain}, {binding})")
        all_inner.append((f"v{var}", domain))
        if kinds[var] == "S":
            inner.append((f"v{var}", domain))
    if rng.random() < 0.3:
        draft.emit(depth, f"T.where({_index_condition(draft)})")
    draft.loops = [*before, *inner]
    target, cell = _target(draft, data=False)
    if rng.random() < 0.85:
        draft.emit(depth, "with T.init():")
        value = f"T.float32({rng.randint(1, 9)}.5)" if rng.random() < 0.6 else f"{_load(draft)} * T.float32(0.5)"
        draft.emit(depth + 1, f"{target}[{cell}] = {value}")
    draft.loops = [*before, *all_inner]
    draft.emit(depth, f"{target}[{cell}] = {target}[{cell}] * T.float32(0.75) + {_value(draft)}")
    draft.loops = before


def _branch(draft: _Draft, depth: int, deepest: int) -> None:
    draft.emit(depth, f"if {_condition(draft)}:")
    _statement(draft, depth + 1, deepest - 1)
    if draft.rng.random() < 0.5:
        draft.emit(depth, "else:")
        _statement(draft, depth + 1, deepest - 1)


def _let(draft: _Draft, depth: int, deepest: int) -> None:
    rng = draft.rng
    var = draft.name("x")
    if rng.random() < 0.5:
        draft.emit(depth, f"{var}: T.float32 = {_value(draft)}")
        draft.values.append(var)
        for _ in range(rng.randint(1, 2)):
            _statement(draft, depth, deepest - 1)
        draft.values.remove(var)
        return
    extent = rng.choice(draft.sizes)
    value = _clamped(draft, _loaded(draft), extent) if rng.random() < 0.5 else _coordinate(draft, extent, data=False)
    draft.emit(depth, f"{var}: T.int32 = {value}")
    draft.loops.append((var, extent))
    for _ in range(rng.randint(1, 2)):
        _statement(draft, depth, deepest - 1)
    draft.loops.remove((var, extent))


def _temporary(draft: _Draft, depth: int, deepest: int) -> None:
    """A block with memory of its own, which it fills first."""
    rng = draft.rng
    name, extent = draft.name("L"), rng.choice(("2", "3", draft.sizes[1]))
    draft.emit(depth, f'with T.block("{draft.name("t")}"):')
    draft.emit(depth + 1, f"{name} = T.alloc_buffer(({extent},))")
    _fill(draft, depth + 1, name, (extent,))
    draft.buffers[name] = (extent,)
    for _ in range(rng.randint(1, 3)):
        _statement(draft, depth + 1, deepest - 1)
    del draft.buffers[name]


def _store(draft: _Draft, depth: int, deepest: int) -> None:
    target, cell = _target(draft, data=True)
    value = _value(draft)
    if draft.rng.random() < 0.3:
        value = f"{target}[{cell}] * T.float32(0.5) + {value}"
    draft.emit(depth, f"{target}[{cell}] = {value}")


def _vector(draft: _Draft, depth: int, deepest: int) -> None:
    """Two lanes at a time, where a buffer is known to be wide enough."""
    wide = [(name, shape) for name, shape in draft.buffers.items() if shape[-1].isdigit() and int(shape[-1]) >= 2]
    if not wide:
        _store(draft, depth, deepest)
        return
    (target, shape), (source, other) = draft.rng.choice(wide), draft.rng.choice(wide)
    cells = [_ramp(draft, s) for s in (shape, other)]
    value = f"{source}[{cells[1]}]"
    if draft.rng.random() < 0.5:
        value = f"{value} * T.broadcast({_value(draft)}, 2)"
    draft.emit(depth, f"{target}[{cells[0]}] = {value}")


def _ramp(draft: _Draft, shape: tuple[str, ...]) -> str:
    last = int(shape[-1])
    start = draft.rng.randint(0, last - 2)
    ramp = f"T.ramp({start}, 1, 2)" if draft.rng.random() < 0.7 else f"T.ramp({start + 1}, -1, 2)"
    return ", ".join((*(_coordinate(draft, extent, data=False) for extent in shape[:-1]), ramp))


def _target(draft: _Draft, *, data: bool) -> tuple[str, str]:
    name = draft.rng.choice([*draft.buffers, *[b for b in draft.buffers if b not in "AB"]])
    return name, ", ".join(_coordinate(draft, extent, data=data) for extent in draft.buffers[name])


def _coordinate(draft: _Draft, extent: str, *, data: bool = True) -> str:
    """An index below an extent."""
    rng = draft.rng
    fitting = [name for name, size in draft.loops if size == extent]
    if fitting and rng.random() < 0.75:
        return rng.choice(fitting)
    if data and rng.random() < 0.2:
        return _clamped(draft, _loaded(draft), extent)
    return _clamped(draft, _index(draft), extent)


def _clamped(draft: _Draft, index: str, extent: str) -> str:
    if extent.isdigit() and draft.rng.random() < 0.7:
        return f"({index}) % {extent}"
    return f"T.min(T.max({index}, 0), {extent} - 1)"


def _loaded(draft: _Draft) -> str:
    return f"I[{_coordinate(draft, draft.sizes[1], data=False)}]"


def _index(draft: _Draft) -> str:
    rng = draft.rng
    names = [name for name, _ in draft.loops if not name.startswith("x")]

    def forms(term: str, other: str) -> tuple[str, ...]:
        number = rng.randint(2, 3)
        return (
            f"({term} + {other})",
            f"({term} - {other})",
            f"({term} * {number})",
            f"({term} // {number})",
            f"({term} % {number})",
        )

    return draft.arithmetic(names, "1", (0, 0, 1, 2), forms, 0.5)


def _index_condition(draft: _Draft) -> str:
    return draft.comparison(lambda: _index(draft), ("<", "<=", "!=", ">=", "=="))


def _condition(draft: _Draft) -> str:
    rng = draft.rng
    roll = rng.random()
    if roll < 0.45:
        return _index_condition(draft)
    data = f"{_load(draft)} < T.float32(0.5)" if rng.random() < 0.5 else f"{_loaded(draft)} < {rng.randint(0, 3)}"
    return (
        data
        if roll < 0.7
        else rng.choice((" and ", " or ")).join(rng.sample((f"({data})", f"({_index_condition(draft)})"), 2))
    )


def _load(draft: _Draft) -> str:
    name = draft.rng.choice(list(draft.buffers))
    return f"{name}[{', '.join(_coordinate(draft, extent) for extent in draft.buffers[name])}]"


def _value(draft: _Draft) -> str:
    rng = draft.rng
    roll = rng.random()
    if draft.values and roll < 0.2:
        return f"{rng.choice(draft.values)} * T.float32(0.875)"
    if roll < 0.3:
        return f"T.float32({rng.randint(1, 99)}.125)"
    if roll < 0.5:
        return f"T.if_then_else({_condition(draft)}, {_load(draft)}, {_load(draft)})"
    if roll < 0.75:
        return f"{_load(draft)} * T.float32(0.625)"
    return f"{_load(draft)} - {_load(draft)} * T.float32(0.375)"
