"""Pairs of programs that TVM made: an operator of its library, and what its primitives and passes make of that.

`python -m tests.oracle.topi.pairs --seeds 0 100` prints them as lines of JSON: it is a process of its own, as TVM may
end the process that it runs in.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from random import Random

from tvm import target, te

from tests.oracle.topi.draw import Draw
from tests.oracle.topi.operators import FAMILIES
from tests.oracle.topi.steps import passed, scheduled


@dataclass(frozen=True)
class TopiPair:
    """Two programs as text, of which family and operator, and the steps between."""

    seed: int
    family: str
    operator: str
    symbolic: bool
    steps: tuple[str, ...]
    before: str
    after: str


def make_pair(seed: int) -> TopiPair | None:
    """The pair of a seed; None where TVM refuses the sizes, or none of its steps could be taken."""
    rng = Random(seed)
    family = list(FAMILIES)[seed % len(FAMILIES)]
    operator = rng.choice(FAMILIES[family])
    draw = Draw(rng, symbolic=rng.random() < 0.4)
    with target.Target("llvm"):
        try:
            func = te.create_prim_func(operator(draw)).with_attr("tirx.noalias", True)
            after, steps = scheduled(func, rng, rng.randint(1, 4)) if rng.random() < 0.8 else (func, [])
            if not steps or rng.random() < 0.3:
                after, passes = passed(after, rng)
                steps = [*steps, *passes]
        # TVM refuses by many kinds of exceptions, and what it does not make is no pair.
        except Exception as problem:  # noqa: BLE001  # a refusal of TVM is not our concern
            print(f"{seed} {operator.__name__}: {type(problem).__name__}: {str(problem)[-200:]!r}", file=sys.stderr)
            return None
        texts = [f.with_attr("global_symbol", name).script() for f, name in ((func, "before"), (after, "after"))]
    return TopiPair(seed, family, operator.__name__, bool(draw.sizes), tuple(steps), *texts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the pairs of some seeds."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.topi.pairs")
    parser.add_argument("--seeds", type=int, nargs=2, required=True)
    options = parser.parse_args(arguments)
    for seed in range(*options.seeds):
        child = os.fork()
        if child == 0:  # a process of its own: some primitives end it
            pair = make_pair(seed)
            if pair is not None:
                print(json.dumps(asdict(pair)), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
