"""What studies come out as: tables, figures and text whose sentences stand on cells, and a page."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tests.shares import one_in

from layoutproof.cli.main import main
from layoutproof.graph import GraphBuilder
from layoutproof.studies.kernel_times import Timing
from layoutproof.studies.networks import Edge, contracts_of, edges_of, front_of, shares_of
from layoutproof.studies.report.facts import facts_of
from layoutproof.studies.report.figures import (
    crossover,
    fronts_figure,
    ladder_figure,
    shares_figure,
    speed_figure,
    speed_table,
)
from layoutproof.studies.report.tables import key_of, tables_of
from layoutproof.studies.roadmap_errors import known_errors

STUDY = """schema = 1
name = "small"
tables = ["values", "semantics", "ladder"]

[[grid]]
operators = ["sum-from-first", "max-new-first"]
types = ["float32"]
policies = ["producer-writes", "undef-once", "canary"]
values = ["0", "-0", "-inf"]
"""
ALLOWED = {"convolution": frozenset({"0"}), "relu": frozenset({"anything"}), "softmax": frozenset({"-inf"})}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished study."""
    place = tmp_path_factory.mktemp("study")
    (place / "small.toml").write_text(STUDY)
    cache = str(place / "cache.sqlite")
    assert main(["study", str(place / "small.toml"), "-o", str(place / "out"), "--jobs", "1", "--cache", cache]) == 0
    return place / "out"


@one_in(7)
def test_sentences_stand_on_cells(folder: Path) -> None:
    """Each names cells that are there, and is gone when one of them is."""
    head, *lines = [json.loads(line) for line in (folder / "cells.jsonl").read_text().splitlines()]
    assert (head["format"], head["schema"], head["cells"]) == ("layoutproof study", 2, len(lines))
    keys = {key_of(record) for record in lines}
    facts = facts_of(lines)
    assert any("-0.0 is an identity" in fact.sentence for fact in facts)
    assert any("canary is not seen by max-new-first" in fact.sentence for fact in facts)
    for fact in facts:
        assert set(fact.keys) <= keys
        assert fact.keys
        without = [record for record in lines if key_of(record) != fact.keys[0]]
        assert fact.sentence not in {each.sentence for each in facts_of(without)}


def test_a_page_has_every_cell(folder: Path) -> None:
    """Its tables link to cells, its data have each of them, and `show` makes the same page again."""
    page = (folder / "index.html").read_text()
    data = json.loads(page.partition('id="cells">')[2].partition("</script>")[0])
    rows = (folder / "cells.csv").read_text().splitlines()
    assert len(data) == len(rows) - 1
    assert all(f'href="#{key}"' in page for key in data)
    assert main(["study", "show", str(folder)]) == 0
    assert (folder / "index.html").read_text() == page


def test_figures_are_pictures(folder: Path) -> None:
    """Every figure is well-formed SVG with a title."""
    timings = [Timing("sum", "int8", 20, 32, v, 10.0, 1.5, 1.2, 1.8) for v in ("branching", "masked")]
    edges = [Edge("a", 200, 10, ("conv2d",)), Edge("b", 320, 20, ("relu", "softmax"))]
    lines = [json.loads(line) for line in (folder / "cells.jsonl").read_text().splitlines()][1:]
    (ladder,) = (table for table in tables_of(("ladder",), lines) if table.name == "F4")
    figures = [
        ladder_figure(ladder),
        speed_figure(timings),
        shares_figure([shares_of("net", edges, ALLOWED)]),
        fronts_figure({"net": front_of(edges, ALLOWED, 16)}, 16),
    ]
    for figure in figures:
        root = ET.fromstring(figure)
        assert root.find("{http://www.w3.org/2000/svg}title") is not None
    assert [heads for heads, _ in speed_table(timings).rows] == [
        ("sum", "int8", "branching"),
        ("sum", "int8", "masked"),
    ]


def test_a_crossover_is_where_quartiles_reach_one() -> None:
    """The branch-free kernel is faster where the lower quartile is above 1; neighbouring shares are one range."""

    def timed(elements: int, lower: float) -> Timing:
        return Timing("sum", "int8", elements, 32, "branching", 1.0, lower + 0.1, lower, lower + 0.2)

    assert crossover([timed(17, 0.9), timed(31, 1.4), timed(24, 1.1)]) == "3% to 25%"
    assert crossover([timed(31, 1.4), timed(28, 0.8), timed(24, 1.1), timed(17, 1.2)]) == "3%, 25% to 47%"
    assert crossover([timed(31, 0.9)]) == "nowhere"
    assert crossover([timed(31, 1.1)]) == "everywhere"


def test_one_contract_serves_what_all_readers_take() -> None:
    """Who takes anything takes every value; readers that disagree, and one without a template, leave none."""
    assert contracts_of(Edge("v", 8, 4, ("relu",)), ALLOWED) >= {"anything", "0"}
    assert contracts_of(Edge("v", 8, 4, ("relu", "conv2d")), ALLOWED) == {"0"}
    assert contracts_of(Edge("v", 8, 4, ("conv2d", "softmax")), ALLOWED) == set()
    assert contracts_of(Edge("v", 8, 4, ("relu", "concat")), ALLOWED) == set()


def test_edges_are_what_calls_read() -> None:
    """The values of a graph with channels that some operator reads, with all who read them."""
    g = GraphBuilder("net")
    image = g.input("image", (1, 6, 4, 4))
    first = g.relu(image)
    g_out = g.add(first, g.sigmoid(first))
    found = {edge.value: edge for edge in edges_of(g.build(g_out))}
    assert found["image"].readers == ("relu",)
    (read_twice,) = (edge for edge in found.values() if len(edge.readers) == 2)
    assert set(read_twice.readers) == {"add", "sigmoid"}
    assert (read_twice.channels, read_twice.elements, read_twice.padding(4)) == (6, 96, 32)


def test_a_front_trades_bytes_for_tests() -> None:
    """Bytes grow, guarded iterations fall, and nobody does better with the same edges."""
    edges = [Edge(str(c), 20 * c, c, ("conv2d",)) for c in (3, 5, 9, 17)] + [Edge("x", 60, 6, ("concat",))]
    points = front_of(edges, ALLOWED, 8)
    assert [size for size, _ in points] == sorted(size for size, _ in points)
    assert [tests for _, tests in points] == sorted((tests for _, tests in points), reverse=True)
    assert points[-1][1] == 60
    served = [e for e in edges if e.value != "x"]
    for size, tests in points:
        for mask in range(1 << len(served)):
            chosen = [e for n, e in enumerate(served) if mask >> n & 1]
            if sum(e.padding(8) * 4 for e in chosen) <= size:
                left = sum(e.elements for e in edges) - sum(e.elements for e in chosen)
                assert left >= tests


def test_the_roadmaps_errors_are_shown() -> None:
    """Those of the text are evaluated, with the numbers that are known of them."""
    found = {error.place: error.shown for error in known_errors(())}
    assert found["implicit default, padding of 18"] == "also (2, 4), (2, 5)"
    assert found["guards rewritten for readability"].startswith("6 of 72 points change")
    assert found["pad value B[0, (io - 14) % 4]"] == "(3, 2) holds (0, 1), (3, 3) holds (0, 1)"
    assert found["convolution with its branch removed"].endswith("(3, 2, 2), (3, 3, 1), (3, 3, 2)")
