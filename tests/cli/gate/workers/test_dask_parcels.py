"""Items that travel with their files: judged elsewhere as they are at home, and told of in the same words."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from tests.cli.calling import OPERATORS
from tests.cli.gate.judges import OPTIONS
from tests.cli.gate.workers.fleet import Cluster, cluster
from tests.cli.render.gate.marked import new_mark
from tests.shares import one_in

from layoutproof.cli.gate import loading as copies
from layoutproof.cli.gate.check_items import Item, Options, find_items
from layoutproof.cli.gate.judging.judge import judge
from layoutproof.cli.gate.judging.schedules import timeless
from layoutproof.cli.gate.loading import text_of
from layoutproof.cli.gate.outcomes import Finding, Kind, Outcome, Place
from layoutproof.cli.gate.workers import dask_fleet
from layoutproof.cli.gate.workers.fleet_worker import Parcel, Unpacked, as_at_home, pack, unpack
from layoutproof.cli.gate.workers.item_limits import Limits
from layoutproof.cli.gate.workers.pool import run_items

TEXT = "some text\n"
WAYS = ["a.py", "./a.py", "below/../a.py", "../home/a.py", "{home}/a.py"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a file in it."""
    folder = tmp_path / "home"
    (folder / "below").mkdir(parents=True)
    (folder / "a.py").write_text(TEXT)
    return folder


def trace(program: str) -> Item:
    """A schedule of a program; the log that it comes from is nowhere."""
    return Item(Kind.TRACE, f"{program}:f log.jsonl:3", "log.jsonl", 3, "f", None, program, "[]")


def gate(path: str) -> Item:
    """A gate of a file."""
    return Item(Kind.GATE, f"{path}::f", path, 3, "f")


def reading(item: Item, options: Options) -> Outcome:
    """A judge that tells what it sees: the file's content, and where it is by several accounts."""
    path = item.program if item.kind is Kind.TRACE else item.path
    place = Place(path, 1, text=path)
    whole, text = str(Path(path).resolve()), text_of(path)
    finding = Finding("LP528", f"seen at {whole}", "unknown", place=place, related=((place, "here"),), drawing=(path,))
    return Outcome(
        item.kind,
        item.name,
        path,
        place,
        "unknown",
        ({"path": whole},),
        (finding,),
        (text, os.getcwd(), copies.place_of(path)),
    )


def judged(item: Item, unpacked: Unpacked) -> Outcome:
    """What a judge that reads says of an item, as it is told at home."""
    with chdir(unpacked.folder):
        copies.use_copies(unpacked.copies)
        try:
            return as_at_home(reading(item, OPTIONS), unpacked)
        finally:
            copies.use_copies({})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [trace, gate])
def test_a_file_that_is_not_there(home: Path, tmp_path: Path, way: str, kind: Callable[[str], Item]) -> None:
    """A machine without the file judges a copy, however the file is named, and tells the same as one that has it."""
    item = kind(way.format(home=home))
    parcel = pack(item, str(home))
    with chdir(home):
        expected = reading(item, OPTIONS)
    shutil.rmtree(home)
    unpacked = unpack(parcel, tmp_path / "copies")
    assert unpacked.root != "" and judged(item, unpacked) == expected
    assert not home.exists()
    assert list(tmp_path.rglob("*.py")) == [Path(unpacked.root + str(home)) / "a.py"]


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_all_share(home: Path, tmp_path: Path, way: str) -> None:
    """A machine that sees the same file under the same path uses that, with all that lies beside it."""
    item = gate(way.format(home=home))
    unpacked = unpack(pack(item, str(home)), tmp_path / "copies")
    assert unpacked == Unpacked(str(home))
    assert not (tmp_path / "copies").exists()


def test_another_file_under_the_same_name(home: Path, tmp_path: Path) -> None:
    """A machine that has another text under that path judges the one that came with the item, and leaves its own
    alone.
    """
    item = gate(str(home / "a.py"))
    parcel = pack(item, str(home))
    (home / "a.py").write_text("another\n")
    assert judged(item, unpack(parcel, tmp_path / "copies")).notes[0] == TEXT
    assert (home / "a.py").read_text() == "another\n"


def test_a_changed_file_is_another_copy(home: Path, tmp_path: Path) -> None:
    """A file that was changed between two runs is judged as it is, not as it was."""
    for text in ("one\n", "two and more\n"):
        (home / "a.py").write_text(text)
        parcel = pack(gate("a.py"), str(home))
        (home / "a.py").unlink()
        assert judged(parcel.item, unpack(parcel, tmp_path / "copies")).notes[0] == text


def test_a_file_that_is_nowhere(home: Path, tmp_path: Path) -> None:
    """A file that cannot be read at home travels as such: that is for the judge to tell."""
    parcel = pack(trace("no.py"), str(home))
    assert parcel.content is None
    unpacked = unpack(parcel, tmp_path / "copies")
    with pytest.raises(FileNotFoundError), chdir(unpacked.folder):
        Path(parcel.item.program).read_text()


def test_a_home_that_is_not_there(tmp_path: Path) -> None:
    """An item without a file is judged in a folder that stands for its home."""
    unpacked = unpack(Parcel(trace("no.py"), "/no/such/home", None), tmp_path)
    assert unpacked.folder == f"{unpacked.root}/no/such/home" and Path(unpacked.folder).is_dir()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster of two workers."""
    with cluster(tmp_path / "fleet", new_mark()) as found:
        yield found


GATES = """
import layoutproof as lp

@lp.gate
def pairs():
    return lp.check_map(lambda i: [i // 2, i % 2], shape=(14,))

@lp.gate
def folded():
    return lp.check_map(lambda i: [i // 2], shape=(14,))
"""


@one_in(10)
def test_a_fleet_that_has_no_files(fleet: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Schedules and gates, right ones and wrong ones, get the same outcomes from a fleet whose machines have none of
    the files.
    """
    home = tmp_path / "project"
    (home / "logs").mkdir(parents=True)
    shutil.copy(OPERATORS / "exp1d.py", home / "exp1d.py")
    (home / "gates.py").write_text(GATES)
    lines = [
        json.dumps([["split", {"block": "compute", "loop": 0, "factors": [2, 7]}]]),
        "[]",
        "no JSON",
        '[["no_such", {}]]',
    ]
    (home / "logs" / "log.jsonl").write_text("\n".join(lines))
    options = Options((), cache=None)
    with chdir(home):
        items = [
            *find_items((Path("exp1d.py"),), (Path("logs/log.jsonl"),)),
            *find_items((home / "exp1d.py",), (Path("logs/log.jsonl"),)),
            *find_items((Path("gates.py"),)),
        ]
        expected = [timeless(outcome) for outcome in run_items(items, judge, options, Limits(workers=2))]
        assert {outcome.verdict for outcome in expected} >= {"proved", "vacuous", "refuted", None}
        packed = [pack(item, str(home)) for item in items]
        monkeypatch.setattr(dask_fleet, "pack", lambda item, at: packed[items.index(item)])
        for path in (*home.glob("*.py"), *home.rglob("*.jsonl")):
            path.unlink()
        assert [
            timeless(outcome) for outcome in run_items(items, judge, options, Limits(dask=fleet.address))
        ] == expected
