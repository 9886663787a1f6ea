"""Damaged caches: nothing false is ever read, what is damaged is set aside, and one warning says so."""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lowering.proof_cache.caches import PLACES, check_right, filled, key, opened, value
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.lowering import codes
from layoutproof.lowering.proof_cache import folder_backend, sqlite_backend

COUNT = 60


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A full cache of each kind, closed."""
    return filled(tmp_path / str(request.param), COUNT)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A full SQLite cache, closed."""
    return filled(tmp_path / "proofs.sqlite", COUNT)


def flip(path: Path, *positions: int) -> None:
    """Change bytes of a file."""
    data = bytearray(path.read_bytes())
    for position in positions:
        data[position % len(data)] ^= 0x5A
    path.write_bytes(data)


def check_works(place: Path) -> None:
    """Fail unless the cache is whole again: what is put is found, by this run and the next one, which has nothing to
    tell.
    """
    store, _ = opened(place)
    store.put_many("proof", [(key(n), value(n)) for n in range(COUNT)])
    store.close()
    again, heard = opened(place)
    assert check_right(again, COUNT) == COUNT and heard.said == []


def aside(place: Path) -> list[str]:
    """What lies beside the cache under a name that says that it is damaged."""
    return sorted(
        path.name
        for path in place.parent.iterdir()
        if ".damaged-" in path.name and not path.name.endswith(("-wal", "-shm"))
    )


@one_in(14)
@pytest.mark.parametrize("seed", range(40))
def test_bytes_changed_anywhere_in_a_database(file: Path, seed: int) -> None:
    """Whatever bytes of the file are others, what is read is what was put, or nothing; the run is not stopped, and the
    cache mends.
    """
    random_one = random.Random(seed)
    size = file.stat().st_size
    flip(file, *(random_one.randrange(size) for _ in range(random_one.choice((1, 5, 50, 500)))))
    store, heard = opened(file)
    there = check_right(store, COUNT)
    store.close()
    assert there == COUNT or set(heard.codes) & {codes.CACHE_DAMAGED, codes.CACHE_ENTRY}, there
    assert len(heard.codes) == len(set(heard.codes))
    check_works(file)


@one_in(21)
@pytest.mark.parametrize("position", range(100))
def test_a_byte_changed_in_the_header(file: Path, position: int) -> None:
    """Each byte of a database's header may be another one: the file is read rightly, set aside, or left alone with a
    word.
    """
    flip(file, position)
    store, heard = opened(file)
    there = check_right(store, COUNT)
    assert there == COUNT or heard.codes in ([codes.CACHE_DAMAGED], [codes.CACHE_UNUSABLE])
    store.put("proof", key(1), value(1))
    assert store.get("proof", key(1)) in (value(1), None if heard.codes == [codes.CACHE_UNUSABLE] else value(1))
    assert (codes.CACHE_DAMAGED in heard.codes) == (aside(file) != [])


def test_a_byte_changed_in_one_payload(place: Path) -> None:
    """A damaged entry is set aside with a warning; the others are there, and the entry can be put anew."""
    store, heard = opened(place)
    if place.suffix == ".sqlite":
        with sqlite3.connect(place) as connection:
            (data,) = connection.execute("SELECT data FROM proof WHERE key = ?", (bytes.fromhex(key(7)),)).fetchone()
            changed = data[:200] + bytes([data[200] ^ 1]) + data[201:]
            connection.execute("UPDATE proof SET data = ? WHERE key = ?", (changed, bytes.fromhex(key(7))))
        connection.close()
    else:
        flip(place / "proof" / key(7)[:2] / key(7), 200)
    assert store.get("proof", key(7)) is None and store.get("proof", key(7)) is None
    assert (
        heard.codes == [codes.CACHE_ENTRY] and key(7)[:12] in heard.said[0].message and "hash" in heard.said[0].message
    )
    assert check_right(store, COUNT) == COUNT - 1
    info = store.info(key(-1))
    assert info is not None and info.damaged == 1 and store.damaged == 1
    check_works(place)


@one_in(4)
@pytest.mark.parametrize("length", [1, 15, 50, 100, 1000, 4095, 4096, 4097, 20_000, 100_000, -1])
def test_a_database_that_is_cut_off(file: Path, length: int) -> None:
    """A file that lost its end is set aside, or the entry that stood there; nothing false is read from what is left."""
    os.truncate(file, length if length > 0 else file.stat().st_size - 1)
    store, heard = opened(file)
    there = check_right(store, COUNT)
    assert heard.codes == [codes.CACHE_DAMAGED] or (
        length < 0 and there == COUNT - 1 and heard.codes == [codes.CACHE_ENTRY]
    )
    store.close()
    check_works(file)
    assert len(aside(file)) <= 1


@one_in(4)
@pytest.mark.parametrize("length", [0, 1, 31, 64, 65, 300, -1])
def test_an_entrys_file_that_is_cut_off(tmp_path: Path, length: int) -> None:
    """A file of a folder that lost its end is moved to `damaged`, and only that one."""
    place = filled(tmp_path / "proofs", COUNT)
    path = place / "proof" / key(7)[:2] / key(7)
    os.truncate(path, length if length >= 0 else path.stat().st_size - 1)
    store, heard = opened(place)
    assert check_right(store, COUNT) == COUNT - 1 and heard.codes == [codes.CACHE_ENTRY]
    assert not path.exists() and (place / "damaged" / f"proof-{key(7)}").exists()
    check_works(place)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """A text at the place is moved away, whole, under a name that says so; a second one gets a name of its own."""
    file = tmp_path / "proofs.sqlite"
    for number in (1, 2):
        for path in tmp_path.glob("proofs.sqlite"):
            path.unlink()
        file.write_text(f"note {number} " * 1000)
        store, heard = opened(file)
        assert heard.codes == [codes.CACHE_DAMAGED] and f"proofs.sqlite.damaged-{number}" in heard.said[0].message
        store.put("proof", key(1), value(1))
        assert store.get("proof", key(1)) == value(1)
        store.close()
        assert (tmp_path / f"proofs.sqlite.damaged-{number}").read_text() == f"note {number} " * 1000


def test_damage_while_it_is_open(file: Path) -> None:
    """A file whose pages are overwritten under an open store is set aside when that shows; the run goes on."""
    store, heard = opened(file)
    assert store.get("proof", key(1)) == value(1)
    size = file.stat().st_size
    with open(file, "r+b") as handle:
        handle.write(os.urandom(size))
    other, _ = opened(file)
    assert check_right(other, COUNT) == 0 and aside(file) == ["proofs.sqlite.damaged-1"]
    assert check_right(store, COUNT) == 0
    store.put("proof", key(1), value(1))
    assert store.get("proof", key(1)) == value(1) == other.get("proof", key(1))
    assert heard.codes in ([], [codes.CACHE_DAMAGED]) and len(aside(file)) == 1


def test_two_that_find_the_damage_set_it_aside_once(file: Path) -> None:
    """The second one to find a damaged file takes the new one that the first has begun."""
    first, _ = opened(file)
    second, heard = opened(file)
    assert check_right(first) == check_right(second) == COUNT
    backend = first._backend
    assert isinstance(backend, sqlite_backend.SqliteBackend) and isinstance(
        second._backend, sqlite_backend.SqliteBackend
    )
    assert backend.renew() == file.with_name("proofs.sqlite.damaged-1")
    first.put("proof", key(1), value(1))
    assert second._backend.renew() is None
    assert second.get("proof", key(1)) == value(1) and heard.said == []


def test_something_else_takes_its_place(file: Path, tmp_path: Path) -> None:
    """Somebody puts another database, or a folder, where the open cache was: the run goes on without it, and leaves
    that alone.
    """
    for other in ("database", "folder"):
        store, heard = opened(file)
        assert store.get("proof", key(1)) == value(1)
        file.rename(tmp_path / f"was {other}")
        if other == "database":
            with sqlite3.connect(file) as connection:
                connection.execute("CREATE TABLE mine (mine TEXT)")
            connection.close()
        else:
            file.mkdir()
        assert store.get("proof", key(1)) is None and list(store.entries("proof")) == []
        store.put("proof", key(1), value(1))
        assert heard.codes == [codes.CACHE_UNUSABLE] and aside(file) == []
        store.close()
        if other == "database":
            file.unlink()
        else:
            file.rmdir()
        (tmp_path / f"was {other}").rename(file)


def test_a_missing_table(file: Path) -> None:
    """A database of ours without one of its tables is damaged."""
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TABLE report")
    connection.close()
    store, heard = opened(file)
    assert heard.codes == [codes.CACHE_DAMAGED] and store.get("report", key(1)) is None
    check_works(file)


def test_entries_in_each_others_places(place: Path) -> None:
    """An entry under another one's key, or in another table, is not believed though it is whole."""
    store, heard = opened(place)
    if place.suffix == ".sqlite":
        with sqlite3.connect(place) as connection:
            connection.execute(
                "INSERT INTO report (key, data) SELECT key, data FROM proof WHERE key = ?", (bytes.fromhex(key(1)),)
            )
            connection.execute(
                "UPDATE proof SET key = ? WHERE key = ?", (bytes.fromhex(key(1000)), bytes.fromhex(key(2)))
            )
        connection.close()
    else:
        for source, table, name in ((key(1), "report", key(1)), (key(2), "proof", key(1000))):
            target = place / table / name[:2] / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((place / "proof" / source[:2] / source).read_bytes())
    assert store.get("report", key(1)) is None and store.get("proof", key(1000)) is None
    assert store.get("proof", key(1)) == value(1)
    assert heard.codes == [codes.CACHE_ENTRY] and store.damaged == 2


def newer_file(place: Path) -> None:
    """A database of the next version."""
    with sqlite3.connect(place) as connection:
        connection.execute(f"PRAGMA user_version = {sqlite_backend.VERSION + 1}")
    connection.close()


def newer_folder(place: Path) -> None:
    """A folder of the next version."""
    marker = place / folder_backend.MARKER
    marker.write_text(json.dumps(json.loads(marker.read_text()) | {"version": folder_backend.VERSION + 1}))


@pytest.mark.parametrize(("name", "make_newer"), [("p.sqlite", newer_file), ("p", newer_folder)])
def test_a_newer_version_is_left_alone(tmp_path: Path, name: str, make_newer: Callable[[Path], None]) -> None:
    """What a newer program wrote is neither read nor changed: the run goes on without a cache, and says so once."""
    place = filled(tmp_path / name, COUNT)
    make_newer(place)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    store, heard = opened(place)
    assert not store.usable and check_right(store, COUNT) == 0
    store.put("proof", key(1), value(1))
    assert store.clear() is None and store.info(key(-1)) is None and store.get("proof", key(1)) is None
    store.close()
    assert heard.codes == [codes.CACHE_UNUSABLE] and "version 2" in heard.said[0].message
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"format": "other", "version": 1}', '{"format": "layoutproof-proofs"}', "\0\0\0"]
)
def test_a_damaged_marker(tmp_path: Path, content: str) -> None:
    """The file that says what a folder is may be damaged: it is moved away and written anew, and the entries are still
    there.
    """
    place = filled(tmp_path / "proofs", COUNT)
    (place / folder_backend.MARKER).write_text(content)
    store, heard = opened(place)
    assert heard.codes == [codes.CACHE_DAMAGED] and check_right(store, COUNT) == COUNT
    assert (place / f"{folder_backend.MARKER}.damaged-1").read_text() == content
    check_works(place)


def test_without_mending_nothing_is_moved(file: Path) -> None:
    """Whoever only looks does not move what is damaged: it is not used."""
    from layoutproof.lowering.proof_cache.store import ProofStore

    file.write_text("no database" * 1000)
    said: list[str] = []
    store = ProofStore.open(str(file), lambda diagnostic: said.append(diagnostic.code), mend=False)
    assert not store.usable and said == [codes.CACHE_UNUSABLE] and aside(file) == []
    assert file.read_text() == "no database" * 1000


def test_a_failure_is_a_python_warning_by_default(file: Path) -> None:
    """Without a listener, trouble is told as a warning of Python's."""
    from layoutproof.lowering.proof_cache.store import ProofStore

    file.write_text("no database" * 1000)
    with pytest.warns(RuntimeWarning, match="was damaged"):
        ProofStore.open(str(file))


def test_a_foreign_database_is_an_error_though_it_is_newer(tmp_path: Path) -> None:
    """A database of another program is told as such, whatever version it has."""
    file = tmp_path / "other.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE entries (mine TEXT)")
        connection.execute("PRAGMA user_version = 7")
        connection.execute("PRAGMA application_id = 252006675")
    connection.close()
    with pytest.raises(LayoutproofError, match="something else"):
        opened(file)
