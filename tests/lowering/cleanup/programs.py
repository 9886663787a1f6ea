"""Programs that the tests of the cleaning passes share, and random ones full of things to clean."""

from __future__ import annotations

from random import Random

from tests.lowering.programs import program

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func

HEAD = """def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), C: T.Buffer((4, 4), "int32")):
    T.func_attr({"tirx.noalias": True})
"""


def stated(body: str) -> PrimFunc:
    """The function over `A` and `B` of 16 and `C` of 4 by 4 with these statements, parameters that do not overlap."""
    return program(HEAD + body)


def text_of(func: PrimFunc) -> str:
    """The statements of such a function, as printed."""
    return print_func(func).split("True})\n", 1)[1]


def random_function(rng: Random) -> PrimFunc:
    """Loops with guards that repeat or exclude each other, stores that are overwritten, copies of what is there,
    choices in values.
    """
    lines = ['    S = T.alloc_buffer((16,), "int32")', "    for z in range(16):", "        S[z] = z"]
    if rng.random() < 0.4:
        lines += [
            "    for p in range(16):",
            f"        T.assume(p < {rng.choice([0, 3, 14])} or A[p] == {rng.randint(0, 2)})",
        ]
    for number in range(rng.randint(1, 3)):
        lines += _nest(rng, f"i{number}", f"j{number}")
    return stated("\n".join(lines) + "\n")


def _nest(rng: Random, i: str, j: str) -> list[str]:
    deep = rng.random() < 0.6
    cells = [f"{i}*4 + {j}", f"{j}*4 + {i}", i, j, "5"] if deep else [i, f"15 - {i}", "5", f"{i}//2"]
    tests = [f"{i} < 3", f"{i} >= 3", f"{i} != 0", "(NOT)", f"{i}//2 == 1"]
    tests += (
        [f"{j} < 2", f"4*{i} + {j} < 14", f"{i} == 3 and {j} >= 2", f"{j} < 3 and {i} < 2"]
        if deep
        else [f"{i} < 14", f"{i} >= 14"]
    )
    tests = [t for t in tests if t != "(NOT)"]
    chosen = rng.sample(tests, 2)
    head = (
        [f"    for {i}, {j} in T.grid(4, 4):"] if deep else [f"    for {i} in range({rng.choice(['0, 16', '2, 14'])}):"]
    )

    def store() -> str:
        cell = rng.choice(cells)
        name = rng.choice("ABS")
        value = rng.choice(
            [str(rng.randint(0, 2)), i, f"{name}[{cell}]", f"{rng.choice('ABS')}[{rng.choice(cells)}] + 1"]
        )
        if rng.random() < 0.3:
            value = f"T.if_then_else({rng.choice(chosen)}, {value}, {rng.choice(['0', i])})"
        return f"{name}[{cell}] = {value}"

    body: list[str] = []
    for _ in range(rng.randint(1, 3)):
        if rng.random() < 0.6:
            body += [f"        if {rng.choice(chosen)}:", f"            {store()}"]
            if rng.random() < 0.4:
                body += ["        else:", f"            {store()}"]
        else:
            body.append(f"        {store()}")
    return head + body
