"""Random kernels without barriers, and the barriers that TVM puts into them: what is accepted without has no race with
just these.

    python -m tests.oracle.thread_sync --kernels 1000 --seed 0
"""

from __future__ import annotations

import argparse
import inspect
import random
import sys
from collections import Counter
from unittest import mock

import tvm
from tvm.s_tir import transform

import layoutproof as lp
from layoutproof.ir.threads.sequential import Barriers, NoSequence, Sequential, sequential
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.faults.races import prove_race_free
from layoutproof.verify.verdict.verdict import Status

HEAD = """@T.prim_func(s_tir=True)
def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    T.func_attr({"tirx.noalias": True, "global_symbol": "f"})
    S = T.decl_buffer((16,), "int32", scope="shared")
    Q = T.decl_buffer((16,), "int32", scope="shared")
    tx = T.launch_thread("threadIdx.x", 4)
"""


class _Maker:
    """The text of one kernel of two shared buffers."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self._body(1, rng.randint(2, 4), ())

    def _index(self, loops: tuple[str, ...]) -> str:
        places = ["tx", "tx", "3 - tx", "tx + 4", "(tx + 1) % 4", "tx * 2", "tx // 2"]
        if loops:
            k = loops[-1]
            places += [f"({k} + tx) % 4", f"{k} % 2 * 4 + tx", f"{k} % 2 * 4 + 3 - tx"]
        return self.rng.choice(places)

    def _cell(self, loops: tuple[str, ...]) -> str:
        return f"{self.rng.choice('SQ')}[{self._index(loops)}]"

    def _body(self, depth: int, number: int, loops: tuple[str, ...]) -> None:
        indent = "    " * depth
        for _ in range(number):
            kind = self.rng.choice(("store", "store", "store", "read", "read", "loop", "if"))
            if kind == "store":
                value = self.rng.choice(["A[tx]", self._cell(loops), self._cell(loops), "tx"])
                self.lines.append(f"{indent}{self._cell(loops)} = {value} + {loops[-1] if loops else 1}")
            elif kind == "loop" and len(loops) < 2:
                self.lines.append(f"{indent}for k{len(loops)} in range({self.rng.choice((2, 3, 4))}):")
                self._body(depth + 1, self.rng.randint(1, 3), (*loops, f"k{len(loops)}"))
            elif kind == "if" and loops:
                self.lines.append(f"{indent}if {loops[-1]} {self.rng.choice(('% 2 == 1', '< 1', '== 1'))}:")
                self._body(depth + 1, 1, loops)
            else:
                self.lines.append(f"{indent}B[tx * 4 + {self.rng.randint(0, 3)}] = {self._cell(loops)}")


def random_kernel(seed: int) -> str:
    """The text of a kernel without barriers."""
    return HEAD + "\n".join(_Maker(random.Random(seed)).lines) + "\n"


def with_tvms_barriers(text: str) -> str | None:
    """The kernel as TVM prints it after its pass ThreadSync; None where TVM refuses it."""
    # A decorator with arguments has TVM ask for its callers and their sources. It needs none for a text, and they take
    # longer than all the rest where many modules are loaded.
    with mock.patch.object(inspect, "stack", list):
        module = tvm.IRModule({"f": tvm.script.from_source(text)})
    try:
        (func,) = transform.ThreadSync("shared")(module).functions.values()
    except tvm.error.InternalError:  # a barrier in a branch
        return None
    return str(func.script())


def judge(text: str) -> str:
    """What became of a kernel. Raises AssertionError where one is accepted that TVM's barriers do not make right."""
    form = sequential(lp.loads(text))
    if isinstance(form, NoSequence) or not _is_race_free(form):
        return "not accepted"
    lowered = with_tvms_barriers(text)
    if lowered is None:
        return "refused by TVM"
    theirs = sequential(lp.loads(lowered), Barriers.AS_WRITTEN)
    assert isinstance(theirs, Sequential) and _is_race_free(theirs), f"a race with TVM's barriers\n{text}\n{lowered}"
    return "accepted, with barriers" if form.implied else "accepted"


def _is_race_free(form: Sequential) -> bool:
    parts = [form.func] if form.apart is None else [form.func, form.apart]
    return all(v.status is Status.PROVED for part in parts for v in prove_race_free(Facts.of(part)))


def main() -> int:
    """Judge kernels and print what became of them."""
    parser = argparse.ArgumentParser(description="Compare implied barriers with TVM's.")
    parser.add_argument("--kernels", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    options = parser.parse_args()
    counts = Counter(judge(random_kernel(seed)) for seed in range(options.seed, options.seed + options.kernels))
    for what, number in counts.most_common():
        print(f"{number:6} {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
