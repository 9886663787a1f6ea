"""Small programs that the tests of the passes share, as text."""

from __future__ import annotations

from random import Random

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads

HEADER = "@T.prim_func(s_tir=True)\n"


def program(text: str) -> PrimFunc:
    """The function that a text without its decorator states."""
    return loads(HEADER + text, "program.py")


def copy(extent: str = "14", dtype: str = "float32") -> PrimFunc:
    """`B[i] = A[i]`."""
    return program(f"""def main(A: T.Buffer(({extent},), "{dtype}"), B: T.Buffer(({extent},), "{dtype}")):
    for i in range({extent}):
        with T.sblock("copy"):
            v = T.axis.spatial({extent}, i)
            T.reads(A[v])
            T.writes(B[v])
            B[v] = A[v]
""")


def two_stages() -> PrimFunc:
    """`B = A + 1` in a temporary, then `C = B * 2`: an input, a temporary and an output of 16 by 12."""
    return program("""def main(A: T.Buffer((16, 12), "int32"), C: T.Buffer((16, 12), "int32")):
    B = T.sblock_alloc_buffer((16, 12), "int32")
    for i, j in T.grid(16, 12):
        with T.sblock("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] + 1
    for i, j in T.grid(16, 12):
        with T.sblock("second"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = B[vi, vj] * 2
""")


def running_sum() -> PrimFunc:
    """`B[i] = sum over k of A[i, k]`, 14 by 5, with an init."""
    return program("""def main(A: T.Buffer((14, 5), "int32"), B: T.Buffer((14,), "int32")):
    for i, k in T.grid(14, 5):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(B[vi])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
""")


def split_axis(rng: Random, name: str, extent: int) -> tuple[list[tuple[str, int]], str, str | None]:
    """Loops for an axis: the loops, the binding, and the guard where a factor does not divide."""
    if rng.random() < 0.4:
        return [(name, extent)], name, None
    factor = rng.choice([2, 3, 4])
    outer = -(-extent // factor)
    binding = f"{name}o * {factor} + {name}i"
    return [(f"{name}o", outer), (f"{name}i", factor)], binding, f"{binding} < {extent}" if outer * factor > extent else None


def random_reduction(rng: Random) -> PrimFunc:
    """A sum over two axes for each of two others: axes split at random, loops in any order, guards in the block or around it."""
    extents = {"i": rng.choice([1, 3, 5]), "j": rng.choice([2, 4]), "k": rng.choice([1, 4, 5]), "l": rng.choice([1, 3])}
    parts = {name: split_axis(rng, name, extent) for name, extent in extents.items()}
    loops = [loop for part in parts.values() for loop in part[0]]
    rng.shuffle(loops)
    guards = [part[2] for part in parts.values() if part[2] is not None]
    inside = [g for g in guards if rng.random() < 0.7]
    outside = [g for g in guards if g not in inside]
    update = "B[vi, vj] = B[vi, vj] + A[vi, vj, vk, vl]"
    if rng.random() < 0.3:
        update = f"if {loops[0][0]} + {loops[-1][0]} != 1:\n{'    ' * (len(loops) + bool(outside) + 3)}{update}"
    lines = [f"for {name} in range({extent}):" for name, extent in loops]
    lines += [f"if {' and '.join(outside)}:"] if outside else []
    text = "".join("    " * (depth + 1) + line + "\n" for depth, line in enumerate(lines))
    pad = "    " * (len(lines) + 1)
    kinds = {"i": "spatial", "j": "spatial", "k": "reduce", "l": "reduce"}
    body = ['with T.sblock("sum"):']
    body += [f"    v{name} = T.axis.{kinds[name]}({extents[name]}, {parts[name][1]})" for name in extents]
    body += [f"    T.where({' and '.join(inside)})"] if inside else []
    body += ["    with T.init():", "        B[vi, vj] = T.float32(0.5)", f"    {update}"]
    shape = ", ".join(str(e) for e in extents.values())
    head = f'def main(A: T.Buffer(({shape}), "float32"), B: T.Buffer(({extents["i"]}, {extents["j"]}), "float32")):\n'
    return program(head + text + "".join(f"{pad}{line}\n" for line in body))
