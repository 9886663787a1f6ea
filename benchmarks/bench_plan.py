"""Plans of real networks: the layout rewrites before planning, by a greedy walk and at the optimum; how long that takes; how fast they run.

`python -m benchmarks.bench_plan` measures everything (hours on a small machine, since naive kernels of large networks are among it);
`python -m benchmarks.bench_plan squeezenet resnet50 --prove` takes these two, `--run` runs them too. Every figure goes to
`benchmarks/plans.json` as soon as it is there, and the tables in `docs/graphs.md` are made from that file. Each network is measured in a
process of its own, twice where something is proved: with an empty proof cache, and with what the first one left there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from benchmarks.networks import NETWORKS, network
from benchmarks.plan_tables import MARKS, RESULTS, tables

from layoutproof.graph.kernels import Kernels
from layoutproof.graph.model import Array, Graph
from layoutproof.graph.planning.apply import planned
from layoutproof.graph.planning.plan import Plan, plan
from layoutproof.graph.planning.problem import Choice, cost_of
from layoutproof.graph.run import run_graph
from layoutproof.importers.onnx.convert import graph_of
from layoutproof.importers.onnx.model import model_of
from layoutproof.lowering.proof_cache.store import ProofStore
from layoutproof.lowering.remembered import remembering
from layoutproof.lowering.schedule import Schedule

BLOCKS = (4, 8)
ROUNDS = 8
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
    return made, round(time.perf_counter() - start, 3)


def plan_figures(graph: Graph, block: int) -> tuple[Plan, Figures]:
    """The plan of a graph whose convolutions are frozen to blocks of channels, and what is said of it."""
    found, seconds = timed(lambda: plan(graph, {name: {"X": layout(block), "Y": layout(block)} for name in convolutions(graph)}))

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
    """How many values are proved to stand where the plan says, and how long that took, making the planned graph included."""
    _, applied = timed(lambda: found.rewrite)
    verdicts, proved = timed(lambda: found.verdicts)
    answers = Counter(verdict.status.value for verdict in verdicts)
    return {"apply seconds": applied, "prove seconds": proved, "verdicts": dict(answers)}


def run_figures(name: str, found: Plan) -> Figures:
    """The seconds of a run of the network as it is, with its rewrites unplanned, and planned; whether bits agree, and with onnxruntime."""
    unplanned = planned(found.graph, found.problem, found.unplanned)
    variants: list[tuple[str, Graph, dict[str, Schedule]]] = [
        ("plain", found.graph, {}),
        ("unplanned", unplanned.new, dict(unplanned.schedules)),
        ("planned", found.rewrite.new, dict(found.rewrite.schedules)),
    ]
    (given,) = found.graph.inputs
    image = np.random.default_rng(1).normal(size=given.shape).astype(np.float32)
    outputs, figures = dict[str, Array](), Figures()
    runs: dict[str, Callable[[], tuple[Array, ...]]] = {}
    for label, graph, schedules in variants:
        runs[label] = _run_of(graph, {given.name: image}, Kernels(schedules))
        (outputs[label],), figures[f"{label} first seconds"] = timed(runs[label])
    times = {label: list[float]() for label in runs}
    # In turns, so that whatever else the machine does falls on all of them.
    for _ in range(ROUNDS):
        for label, run in runs.items():
            times[label].append(timed(run)[1])
    figures |= {f"{label} seconds": min(seconds) for label, seconds in times.items()}
    bits = [output.view(np.int32) for output in outputs.values()]
    figures["bit-equal"] = all(np.array_equal(bits[0], other) for other in bits)
    return figures | _against_onnxruntime(name, image, outputs["planned"])


def _run_of(graph: Graph, inputs: dict[str, Array], kernels: Kernels) -> Callable[[], tuple[Array, ...]]:
    """A run of the graph; the first one builds its kernels."""
    return lambda: run_graph(graph, inputs, runner=kernels, mover=kernels.move)


def _against_onnxruntime(name: str, image: Array, made: Array) -> Figures:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = ERRORS_ONLY
    session = onnxruntime.InferenceSession(network(name).SerializeToString(), options, providers=["CPUExecutionProvider"])
    inputs = {session.get_inputs()[0].name: image}
    (wanted,) = session.run(None, inputs)
    seconds = min(timed(lambda: session.run(None, inputs))[1] for _ in range(ROUNDS))
    difference = float(np.max(np.abs(np.asarray(wanted) - made)) / np.max(np.abs(wanted)))
    return {"onnxruntime": onnxruntime.__version__, "onnxruntime seconds": seconds, "largest difference": difference}


def measure(name: str, block: int, *, prove: bool, run: bool) -> Figures:
    """All that is asked for of one network and one layout."""
    graph, importing = timed(lambda: graph_of(model_of(network(name))))
    found, figures = plan_figures(graph, block)
    figures["import seconds"] = importing
    if prove or run:
        figures |= proof_figures(found)
    return figures | (run_figures(name, found) if run else {})


def measured(name: str, block: int, *, prove: bool, run: bool) -> Figures:
    """The same, in processes of their own: what is proved is proved again with what the first run left in the proof cache."""
    with tempfile.TemporaryDirectory() as folder:
        figures = _process(name, block, folder, prove=prove, run=run)
        if prove:
            again = _process(name, block, folder, prove=True, run=False)
            figures |= {f"{key} again": again[key] for key in ("apply seconds", "prove seconds")}
    return figures


def _process(name: str, block: int, folder: str, *, prove: bool, run: bool) -> Figures:
    asked = [word for word, wanted in (("--prove", prove), ("--run", run)) if wanted]
    command = [sys.executable, "-m", "benchmarks.bench_plan", name, "--block", str(block), "--here", folder, *asked]
    # Kernels that store large arrays anew would take more threads than one.
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}
    found: Figures = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=alone).stdout)
    return found


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
    name = NETWORKS[0]
    return tables({name: {str(block): measured(name, block, prove=True, run=False) for block in BLOCKS}})


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=", ".join(NETWORKS))
    parser.add_argument("--block", type=int, action="append", choices=BLOCKS, help="channels in a block; 4 and 8 unless given")
    parser.add_argument("--prove", action="store_true", help="prove every value of the planned graphs")
    parser.add_argument("--run", action="store_true", help="run them, and onnxruntime (in blocks of 8)")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    everything = not given.networks
    blocks = given.block or list(BLOCKS)
    if given.here is not None:
        with remembering(ProofStore.open(given.here)):
            print(json.dumps(measure(given.networks[0], blocks[0], prove=given.prove, run=given.run)))
        return
    for name in given.networks or NETWORKS:
        for block in blocks:
            run = (given.run or everything) and block == max(BLOCKS)
            figures = measured(name, block, prove=given.prove or everything, run=run)
            print(f"{name}, blocks of {block}: {json.dumps(figures)}", flush=True)
            keep(name, block, figures)


if __name__ == "__main__":
    main()
