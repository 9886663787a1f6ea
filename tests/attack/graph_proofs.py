"""Plans of varied graphs, and what becomes of them when they are tampered with: every claim that is proved is looked at
in runs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

from layoutproof.graph.model.graph_witness import GraphRewrite, Interface
from layoutproof.graph.prove.prove_graph import prove_graph_rewrite
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.verify.verdict.verdict import Status
from tests.attack.graph_claims import Judge
from tests.attack.graph_tampering import TAMPERINGS
from tests.attack.small_graphs import small_graph
from tests.attack.varied_graphs import random_wish, varied_graph


@dataclass
class Found:
    """What was tried, by name; claims that were proved and do not hold, or refuted and hold; honest plans that are not
    proved.
    """

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    unproved: list[str] = field(default_factory=list)

    def judge(self, name: str, where: str, judge: Judge, rewrite: GraphRewrite, interface: Interface) -> bool:
        """Enter an attempt: whether all of it was proved."""
        try:
            verdicts = prove_graph_rewrite(rewrite, interface)
        except LayoutproofError:
            self.counts[f"{name}: malformed"] += 1
            return False
        self.wrong += [f"{where}, {name}: {lie}" for lie in judge.lies(rewrite, interface, verdicts)]
        proved = all(verdict.status is Status.PROVED for verdict in verdicts)
        self.counts[f"{name}: {'proved' if proved else 'not proved'}"] += 1
        return proved


def attack(seed: int, graphs: int, tamperings: int = 6, built: float = 0.0) -> Found:
    """Plan graphs, and tamper with what was planned; a part of them, `built`, is run by generated C too."""
    found, chance = Found(), Random(seed)
    for number in range(graphs):
        one = Random(chance.randrange(10**9))
        attack_one(found, f"graph {number} of {seed}", one, tamperings, built)
    return found


def attack_one(found: Found, where: str, chance: Random, tamperings: int, built: float = 0.0) -> None:
    """One graph, planned, looked at, and tampered with."""
    graph = varied_graph(chance) if chance.random() < 0.7 else small_graph(chance)
    judge = Judge(graph, chance.randrange(10**6))
    try:
        made = random_wish(graph, chance).plan(graph)
        rewrite, interface = made.rewrite, made.interface
    except LayoutproofError as refusal:
        found.counts[f"refused: {refusal.diagnostics[0].code}"] += 1
        return
    if not found.judge("as planned", where, judge, rewrite, interface):
        found.unproved.append(where)
    elif Random(where).random() < built and judge.is_defined():
        found.counts["run by generated C"] += 1
        found.wrong += [f"{where}, by generated C: {name}" for name in judge.differences(made)]
    for name in chance.sample(list(TAMPERINGS), tamperings):
        changed = TAMPERINGS[name](rewrite, interface, chance)
        if changed is not None and changed != (rewrite, interface):
            found.judge(name, where, judge, *changed)
