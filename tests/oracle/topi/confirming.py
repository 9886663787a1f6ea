"""Whether TVM agrees that a refuted pair differs: both programs compiled by TVM and run on one random input.

`python -m tests.oracle.topi.confirming ANSWERS` reads what `asking --answers` wrote. Accesses out of bounds and reads
of what was never written may not show in a run: those are told from the text of the answer.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.interp.run import same_values
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.ir.visit import free_variables
from tests.attack.compare_judge import values
from tests.oracle.messages import Job
from tests.oracle.runner import Runner

Array = np.ndarray[Any, Any]


def inputs(func: PrimFunc, seed: int, size: int) -> tuple[Array, ...]:
    """Small whole numbers for each parameter, each symbolic size being `size`: sums are exact in any order."""
    numbers = np.random.default_rng(seed)
    symbols = {v.name: size for b in func.buffers for extent in b.shape for v in free_variables(extent)}
    shapes = [tuple(int(evaluate(extent, symbols)) for extent in b.shape) for b in func.buffers]
    return tuple(values(b.dtype, s, numbers, "small") for b, s in zip(func.buffers, shapes, strict=True))


def confirmed(pairs: Sequence[Mapping[str, Any]], seed: int = 3, size: int = 5) -> dict[int, str]:
    """What TVM says of each pair, by its seed."""
    found: dict[int, str] = {}
    with Runner() as runner:
        for pair in pairs:
            before, after = loads(pair["before"]), loads(pair["after"])
            if [b.shape for b in before.buffers] != [b.shape for b in after.buffers]:
                found[pair["seed"]] = "not run: another layout"
                continue
            run = (inputs(before, seed, size),)
            texts = [pair[side].replace("def " + side, "def main") for side in ("before", "after")]
            outcomes = runner.run([Job("before", texts[0], run), Job("after", texts[1], run)])
            old, new = outcomes["before"], outcomes["after"]
            if old.outputs is None or new.outputs is None:
                found[pair["seed"]] = f"not run: {old.reason or new.reason}"[:160]
                continue
            same = all(same_values(a, b).all() for a, b in zip(old.outputs[0], new.outputs[0], strict=True))
            found[pair["seed"]] = "alike" if same else "TVM's results differ too"
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Say of each refuted pair what TVM says."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.topi.confirming")
    parser.add_argument("answers", type=Path)
    options = parser.parse_args(arguments)
    pairs = [json.loads(line) for line in options.answers.read_text().splitlines()]
    refuted = [pair for pair in pairs if pair["verdict"] == "refuted"]
    found = confirmed(refuted)
    for pair in refuted:
        said = " ".join(pair["why"].split())[70:240]
        print(f"{pair['seed']} {pair['operator']} {pair['steps'][-4:]}: {found[pair['seed']]} | {said}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
