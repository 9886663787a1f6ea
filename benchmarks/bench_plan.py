"""Plans of real networks: the layout rewrites before planning, by a greedy walk and at the optimum; how long that
takes; how fast they run.

`python -m benchmarks.bench_plan` measures everything, in some minutes on four cores that are idle, with about 15 GB of
memory; `python -m benchmarks.bench_plan squeezenet resnet50 --prove` takes these two, `--run` runs them too. Every
figure goes to `benchmarks/plans.json`, and the tables in `docs/graphs.md` are made from that file. Each network is
measured in a process of its own, twice where something is proved: with empty caches of proofs and of kernels, and with
what the first one left there.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks.networks import NETWORKS, network
from benchmarks.plan_jobs import READY, Asked, again, side_by_side
from benchmarks.plan_tables import MARKS, RESULTS, tables
from layoutproof.graph.model.graph import Array, Graph
from layoutproof.graph.model.graph_run import run_graph
from layoutproof.graph.planning.apply import planned
from layoutproof.graph.planning.planner import Plan, plan
from layoutproof.graph.planning.planning_problem import Choice, cost_of
from layoutproof.graph.tuning.kernels import Kernels
from layoutproof.importers.onnx.convert import graph_of
from layoutproof.importers.onnx.onnx_model import model_of
from layoutproof.lowering.proof_cache.remembered import PROOF
from layoutproof.lowering.proof_cache.store import ProofStore
from layoutproof.verify.settings import Settings, within

BLOCKS = (4, 8)
ROUNDS, SECONDS = (5, 30), 4.0
"""How often things are run: about as many seconds in all, within bounds."""
ERRORS_ONLY = 3
"""As onnxruntime counts severities: it would warn of each weight that older files list as an input, too."""
PAGE = Path(__file__).resolve().parent.parent / "docs" / "graphs.md"
Figures = dict[str, Any]
T = TypeVar("T")


def layout(block: int) -> str:
    """NCHW in blocks of channels."""
    return f"lambda n, c, h, w: [n, c//{block}, h, w, c%{block}]"


def timed(make: Callable[[], T]) -> tuple[T, float]:
    """What a function returns, and the seconds that it took."""
    start = time.perf_counter()
    made = make()
    return made, round(time.perf_counter() - start, 5)


def plan_figures(graph: Graph, block: int) -> tuple[Plan, Figures]:
    """The plan of a graph whose convolutions are frozen to blocks of channels, and what is said of it."""
    found, seconds = timed(
        lambda: plan(graph, {name: {"X": layout(block), "Y": layout(block)} for name in convolutions(graph)})
    )

    def figures(choice: Choice) -> Figures:
        return {"rewrites": found.count(choice), "bytes": cost_of(found.problem, choice)}

    return found, {
        "calls": len(graph.steps),
        "refused": len(found.refused),
        "optimal": found.optimal,
        "before": figures(found.unplanned),
        "greedy": figures(found.greedy),
        "exact": figures(found.choice),
        "plan seconds": seconds,
    }


def convolutions(graph: Graph) -> tuple[str, ...]:
    """The names of the graph's convolutions: plain, grouped and depthwise."""
    named = {function.name.rstrip("0123456789").removesuffix("_") for function in graph.functions()}
    return tuple(sorted(name for name in named if name.endswith("conv2d")))


def proof_figures(found: Plan) -> Figures:
    """How many values are proved to stand where the plan says, and how long that took, making the planned graph
    included.
    """
    _, applied = timed(lambda: found.rewrite)
    verdicts, proved = timed(lambda: found.verdicts)
    answers = Counter(verdict.status.value for verdict in verdicts)
    return {"apply seconds": applied, "prove seconds": proved, "verdicts": dict(answers)}


class Runs:
    """The network planned, with its rewrites unplanned and, where `plain` says so, as it is, run by kernels on one
    image.
    """

    def __init__(self, name: str, found: Plan, *, plain: bool) -> None:
        self.name = name
        (given,) = found.graph.inputs
        self.image = np.random.default_rng(1).normal(size=given.shape).astype(np.float32)
        unplanned = planned(found.graph, found.problem, found.unplanned)
        kernels = Kernels(found.rewrite.schedules)
        self.functions = len(found.rewrite.new.functions())
        self.runs = {
            "planned": self._run(found.rewrite.new, kernels),
            "unplanned": self._run(unplanned.new, kernels.also(unplanned.schedules)),
        }
        if plain:
            self.runs["plain"] = self._run(found.graph, kernels.also({}))
        self.outputs = dict[str, Array]()

    def _run(self, graph: Graph, kernels: Kernels) -> Callable[[], tuple[Array, ...]]:
        (given,) = graph.inputs
        return lambda: run_graph(graph, {given.name: self.image}, runner=kernels, mover=kernels.move)

    def first(self, label: str) -> float:
        """The seconds of a first run, which builds the kernels."""
        (self.outputs[label],), seconds = timed(self.runs[label])
        return seconds

    def timed(self, folder: str) -> Figures:
        """The seconds of a run of each, in turns, so that whatever else the machine does falls on all of them; whether
        bits agree.

        What the network as it is makes is kept in the folder, or found there.
        """
        kept, runs = Path(folder) / f"{self.name}.npy", dict[str, Callable[[], Any]](self.runs)
        if "plain" in runs:
            session = _session(self.name)
            inputs = {session.get_inputs()[0].name: self.image}
            runs["onnxruntime"] = lambda: session.run(None, inputs)
            np.save(kept, np.stack([self.outputs["plain"], runs["onnxruntime"]()[0]]))
        rounds = max(ROUNDS[0], min(ROUNDS[1], int(SECONDS / sum(timed(run)[1] for run in runs.values()))))
        times = {label: list[float]() for label in runs}
        for _ in range(rounds):
            for label, run in runs.items():
                times[label].append(timed(run)[1])
        plain, wanted = np.load(kept)
        equal = (np.array_equal(output.view(np.int32), plain.view(np.int32)) for output in self.outputs.values())
        return {f"{label} seconds": min(seconds) for label, seconds in times.items()} | {
            "bit-equal": all(equal),
            "largest difference": float(np.max(np.abs(wanted - plain)) / np.max(np.abs(wanted))),
        }


def _session(name: str) -> Any:
    """onnxruntime's session for a network, with one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = ERRORS_ONLY
    return onnxruntime.InferenceSession(network(name).SerializeToString(), options, providers=["CPUExecutionProvider"])


@dataclass
class Counted:
    """A proof cache that counts what it is asked for, and what it knows."""

    store: ProofStore
    asked: int = 0
    known: int = 0

    def get(self, table: str, key: str) -> dict[str, Any] | None:
        """As the cache does."""
        found = self.store.get(table, key)
        if table == PROOF:
            self.asked += 1
            self.known += found is not None
        return found

    def put(self, table: str, key: str, value: dict[str, Any]) -> None:
        """As the cache does."""
        self.store.put(table, key, value)


def measure(
    name: str, block: int, folder: str, asked: Asked, *, plain: bool, second: bool
) -> tuple[Figures, Runs | None]:
    """All that is asked for of one network and one layout but the times of runs."""
    cache = Counted(ProofStore.open(folder))
    runs = None
    with within(Settings(memory=cache)):
        graph, importing = timed(lambda: graph_of(model_of(network(name))))
        found, figures = plan_figures(graph, block)
        figures["import seconds"] = importing
        if asked.prove or asked.run:
            figures |= proof_figures(found)
        if asked.run:
            runs = Runs(name, found, plain=plain)
            figures |= {"functions": runs.functions, "first seconds": runs.first("planned")}
        if second:
            return {**figures, "proofs asked": cache.asked, "proofs known": cache.known}, None
        if runs is not None:
            for label in list(runs.runs)[1:]:
                runs.first(label)
    if asked.prove:
        later = again((name, block), folder, asked)
        figures |= {
            f"{key} again": later[key] for key in ("apply seconds", "prove seconds", "first seconds") if key in later
        }
        figures |= {key: later[key] for key in ("proofs asked", "proofs known")}
    return figures, runs


def keep(name: str, block: int, figures: Figures) -> None:
    """Add figures to those that are there, and make the tables anew."""
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    results.setdefault(name, {}).setdefault(str(block), {}).update(figures)
    results = {each: dict(sorted(results[each].items())) for each in NETWORKS if each in results}
    RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    before, start, rest = PAGE.read_text(encoding="utf-8").partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    PAGE.write_text(f"{before}{start}\n\n{tables(results)}\n{end}{after}", encoding="utf-8")


def table() -> str:
    """The tables of the smallest network, measured now; of the others `docs/graphs.md` has what was measured last."""
    found = side_by_side(NETWORKS[:1], Asked(prove=True, run=False, blocks=BLOCKS, at_once=1))
    return tables({NETWORKS[0]: {str(block): figures for (_, block), figures in found}})


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=", ".join(NETWORKS))
    parser.add_argument(
        "--block", type=int, action="append", choices=BLOCKS, help="channels in a block; 4 and 8 unless given"
    )
    parser.add_argument("--prove", action="store_true", help="prove every value of the planned graphs")
    parser.add_argument("--run", action="store_true", help="run them, and onnxruntime")
    parser.add_argument(
        "--at-once",
        type=int,
        default=os.cpu_count(),
        help="how many networks are prepared at a time; one for each core",
    )
    parser.add_argument("--here", help=argparse.SUPPRESS)
    parser.add_argument("--outputs", help=argparse.SUPPRESS)
    parser.add_argument("--plain", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--again", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    everything = not given.networks
    blocks = tuple(given.block or BLOCKS)
    asked = Asked(given.prove or everything, given.run or everything, blocks, max(1, given.at_once or 1))
    if given.here is not None:
        figures, runs = measure(given.networks[0], blocks[0], given.here, asked, plain=given.plain, second=given.again)
        print(READY, flush=True)
        input()
        print(json.dumps(figures | (runs.timed(given.outputs) if runs is not None else {})))
        return
    for (name, block), figures in side_by_side(given.networks or NETWORKS, asked):
        print(f"{name}, blocks of {block}: {json.dumps(figures)}", flush=True)
        keep(name, block, figures)


if __name__ == "__main__":
    main()
