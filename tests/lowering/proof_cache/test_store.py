"""What a proof cache keeps, and gives back: the same for a file and for a folder."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.lowering.proof_cache.caches import PLACES, check_right, filled, key, opened, run, value

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.lowering import codes
from layoutproof.lowering.proof_cache import backend as packing
from layoutproof.lowering.proof_cache.store import VARIABLE, ProofStore, is_there, place_of


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A place of each kind, with nothing there yet."""
    return tmp_path / "below" / str(request.param)


def test_what_was_put_comes_back(place: Path) -> None:
    """A value comes back as it was, its keys in their order, from an open store and from one that is opened later."""
    first = {"z": [1, 2.5, None, True, "\N{SNOWMAN} \ud800"], "a": {"big": 1 << 200, "": []}, "tool": "none"}
    store, heard = opened(place)
    store.put("report", key(1), first)
    assert store.get("report", key(1)) == first
    store.close()
    again, _ = opened(place)
    found = again.get("report", key(1))
    assert json.dumps(found) == json.dumps(first)
    assert again.get("proof", key(1)) is None and again.get("report", key(2)) is None
    assert heard.said == []


def test_a_value_is_replaced(place: Path) -> None:
    """The last value under a key counts, and there is one."""
    store, _ = opened(place)
    store.put("proof", key(1), value(1))
    store.put("proof", key(1), value(2))
    assert store.get("proof", key(1)) == value(2)
    assert list(store.entries("proof")) == [(key(1), value(2))]


def test_what_comes_back_is_the_readers_own(place: Path) -> None:
    """Changing what was read, or what was put, changes nothing in the store."""
    store, _ = opened(place)
    mine = value(1)
    store.put("proof", key(1), mine)
    mine["number"] = 5
    found = store.get("proof", key(1))
    assert found == value(1)
    found["number"] = 6
    assert store.get("proof", key(1)) == value(1)


def test_all_entries(place: Path) -> None:
    """Every entry of a table comes up once, however many there are, also while others are written."""
    store, heard = opened(place)
    store.put_many("proof", [(key(n), value(n, 1)) for n in range(450)])
    store.put("report", key(0), {"other": 1})
    store.put_many("proof", [])
    seen = []
    for name, found in store.entries("proof"):
        seen.append(name)
        store.put("proof", name, found)
    assert sorted(seen) == sorted(key(n) for n in range(450)) and heard.said == []


def test_info_and_clear(place: Path) -> None:
    """Entries are counted by table and by the version of the tool; those of other versions can be removed alone."""
    store, _ = opened(place)
    store.put_many("proof", [(key(n), value(n) | {"tool": key(-1 - n % 3)}) for n in range(9)])
    store.put_many("report", [(key(n), {"n": n}) for n in range(2)])
    info = store.info(key(-1))
    assert info is not None and info.place == str(place) and info.size > 1000 and info.entries == 11
    assert {name: (count.entries, count.current) for name, count in info.tables.items()} == {
        "proof": (9, 3),
        "report": (2, 0),
    }
    assert store.clear(keep=key(-1)) == 8
    assert {name for name, _ in store.entries("proof")} == {key(n) for n in (0, 3, 6)}
    assert store.clear() == 3 and store.clear() == 0
    empty = store.info(key(-1))
    assert empty is not None and empty.entries == 0 and empty.size < info.size
    store.put("proof", key(1), value(1))
    assert store.get("proof", key(1)) == value(1)


def test_a_wrong_entry_is_set_aside(place: Path) -> None:
    """An entry that is taken out is kept apart until all is cleared; one that was replaced meanwhile stays."""
    store, _ = opened(place)
    store.put_many("proof", [(key(n), value(n)) for n in range(3)])
    assert store.set_aside("proof", key(0), value(1)) is None
    where = store.set_aside("proof", key(1), value(1))
    assert where is not None and "damaged" in where
    assert store.set_aside("proof", key(1), value(1)) is None
    assert [n for n in range(3) if store.get("proof", key(n)) is None] == [1]
    info = store.info(key(-1))
    assert info is not None and info.damaged == 1
    store.clear()
    info = store.info(key(-1))
    assert info is not None and info.damaged == 0


@pytest.mark.parametrize("bad", ["", "x", "A" * 64, "g" * 64, f"{'a' * 64}\n", "../" * 20 + "abcd", "a" * 63])
def test_a_key_is_a_hash(place: Path, bad: str) -> None:
    """Anything else is refused before it comes near a file's name."""
    store, _ = opened(place)
    refused: list[Callable[[], object]] = [
        lambda: store.get("proof", bad),
        lambda: store.put("proof", bad, {}),
        lambda: store.set_aside("proof", bad, {}),
    ]
    for work in refused:
        with pytest.raises(ValueError, match="SHA-256"):
            work()


@pytest.mark.parametrize("table", ["other", "damaged", "", "proof; DROP TABLE proof"])
def test_a_table_is_one_of_two(place: Path, table: str) -> None:
    """Any other name is refused before it comes near a database or a folder."""
    store, _ = opened(place)
    with pytest.raises(ValueError, match="no table"):
        store.get(table, key(1))
    with pytest.raises(ValueError, match="no table"):
        store.put(table, key(1), {})
    with pytest.raises(ValueError, match="no table"):
        list(store.entries(table))


@pytest.mark.parametrize("bad", [{"x": float("nan")}, {"x": {1, 2}}, {"x": b"bytes"}])
def test_a_value_is_json(place: Path, bad: dict[str, Any]) -> None:
    """What JSON cannot say is refused, and nothing is kept of a group in which it is."""
    store, _ = opened(place)
    with pytest.raises((TypeError, ValueError)):
        store.put_many("proof", [(key(1), value(1)), (key(2), bad)])
    assert list(store.entries("proof")) == []


def test_a_value_that_is_too_large(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value past the limit is not kept, and a small entry that would unfold to one is not believed."""
    store, heard = opened(place)
    store.put("proof", key(1), {"zeros": "0" * 100_000})
    monkeypatch.setattr(packing, "MOST_BYTES", 50_000)
    with pytest.raises(ValueError, match="50000"):
        store.put("proof", key(2), {"zeros": "0" * 100_000})
    assert store.get("proof", key(1)) is None and heard.codes == [codes.CACHE_ENTRY]


def test_two_stores_see_each_other(place: Path) -> None:
    """What one puts the other one finds at once, in this process and in another one."""
    first, _ = opened(place)
    second, _ = opened(place)
    first.put("proof", key(1), value(1))
    assert second.get("proof", key(1)) == value(1)
    told = run(
        "import sys; s = ProofStore.open(sys.argv[1]); print(s.get('proof', key(1)) == value(1)); s.put('proof', "
        "key(2), value(2))",
        place,
    )
    assert told == "True\n"
    assert first.get("proof", key(2)) == second.get("proof", key(2)) == value(2)
    first.close()
    assert second.get("proof", key(2)) == value(2) == first.get("proof", key(2))


def test_the_place_is_removed_meanwhile(place: Path) -> None:
    """Somebody removes the cache by hand while it is open: the store goes on with a new one."""
    import shutil

    filled(place)
    store, heard = opened(place)
    assert check_right(store) == 60
    shutil.rmtree(place.parent)
    assert check_right(store) == 0
    store.put("proof", key(1), value(1))
    assert store.get("proof", key(1)) == value(1) and heard.said == []
    again, _ = opened(place)
    assert again.get("proof", key(1)) == value(1)


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The place that is named, else the one in the environment, else a file in the user's cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    default = place_of(None)
    assert default == place_of("") and default.name == "proofs.sqlite" and "layoutproof" in default.parts
    monkeypatch.setenv(VARIABLE, "~/somewhere")
    assert place_of(None) == Path.home() / "somewhere"
    assert place_of("x.sqlite") == Path("x.sqlite")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "here"))
    store = ProofStore.open()
    assert store.place == str(tmp_path / "here") and store.kind == "folder"
    assert is_there(tmp_path / "here") and not is_there(tmp_path / "there")


def test_a_place_with_odd_characters(tmp_path: Path) -> None:
    """Question marks, percent signs, spaces and bytes that are no text are part of a name."""
    for name in ("a b?mode=ro#%41 ä.sqlite", "a b?#%41", "\udcff.sqlite", "\udcff"):
        store, heard = opened(tmp_path / name)
        store.put("proof", key(1), value(1))
        store.close()
        again, _ = opened(tmp_path / name)
        assert again.get("proof", key(1)) == value(1) and heard.said == []


def test_other_peoples_folders_are_left_alone(tmp_path: Path) -> None:
    """A folder with other things in it does not become a cache; nor does a file, or another program's database."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "proof").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder.sqlite").mkdir()
    with sqlite3.connect(tmp_path / "other.sqlite") as connection:
        connection.execute("CREATE TABLE proof (mine TEXT)")
    connection.close()
    before = (tmp_path / "other.sqlite").read_bytes()
    for name in ("notes", "file", "folder.sqlite", "other.sqlite"):
        with pytest.raises(LayoutproofError) as caught:
            opened(tmp_path / name)
        assert [d.code for d in caught.value.diagnostics] == [codes.CACHE_FOREIGN] and name in str(caught.value)
    assert [path.name for path in (tmp_path / "notes").iterdir()] == ["proof"]
    assert (tmp_path / "file").read_text() == "mine" and (tmp_path / "other.sqlite").read_bytes() == before


def test_an_empty_file_or_folder_becomes_a_cache(tmp_path: Path) -> None:
    """Anything empty may be used: a temporary file or folder can be named."""
    (tmp_path / "a.sqlite").touch()
    (tmp_path / "a").mkdir()
    for name in ("a.sqlite", "a"):
        assert check_right(opened(filled(tmp_path / name))[0]) == 60


def test_clear_removes_nothing_but_entries(tmp_path: Path) -> None:
    """Other files in the cache's folder, and what links lead to, stay."""
    place, elsewhere = filled(tmp_path / "proofs"), tmp_path / "elsewhere"
    store, _ = opened(place)
    elsewhere.mkdir()
    (elsewhere / key(1)).write_text("mine")
    name = next((place / "proof").iterdir()).name
    mine = [
        place / "README",
        place / "proof" / "note",
        place / "proof" / name / "note",
        place / "proof" / "zz" / key(1),
        place / "damaged" / "x",
    ]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    (place / "proof" / key(1)[:2]).rename(tmp_path / "moved")
    (place / "proof" / key(1)[:2]).symlink_to(elsewhere)
    (place / "report").symlink_to(elsewhere)
    store.clear()
    assert all(path.read_text() == "mine" for path in [*mine, elsewhere / key(1)])
    assert list(store.entries("proof")) == []


def test_nothing_heavy_is_loaded(place: Path) -> None:
    """Opening, putting, finding, counting and clearing load no solver, no numpy, no drawing and no library for
    metadata.
    """
    heavy = (
        "islpy",
        "z3",
        "bitwuzla",
        "cvc5",
        "numpy",
        "ml_dtypes",
        "matplotlib",
        "rich",
        "click",
        "importlib.metadata",
    )
    code = (
        "import sys\nfrom layoutproof.lowering.proof_cache.versions import tool_digest\n"
        "from layoutproof.lowering.proof_cache.entries import is_storable\n"
        "s = ProofStore.open(sys.argv[1])\ns.put('proof', key(1), value(1)); s.get('proof', key(1)); "
        "s.info(tool_digest()); s.clear()\n"
        f"is_storable([]); print([m for m in {heavy!r} if m in sys.modules])"
    )
    told = run(code, place)
    assert told == "[]\n", sys.version
