"""Places that are full, protected or not there: the run goes on without keeping, says so once, and what is there can be
read.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.lowering.proof_cache.caches import PLACES, check_right, filled, key, opened, run, start, value
from tests.shares import one_in

from layoutproof.lowering import codes
from layoutproof.lowering.proof_cache.sqlite_backend import SqliteBackend

# Puts 60 values with files that may not grow past a limit; prints how many are there, and what was told.
LIMITED = """
import resource, sys
place, limit = sys.argv[1], int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
said = []
store = ProofStore.open(place, said.append)
for n in range(60):
    store.put("proof", key(n), value(n, 400))
found = [store.get("proof", key(n)) for n in range(60)]
assert all(each in (None, value(n, 400)) for n, each in enumerate(found))
store.close()
print(sum(each is not None for each in found), [d.code for d in said])
"""


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A place of each kind, with nothing there yet."""
    return tmp_path / str(request.param)


@one_in(21)
@pytest.mark.parametrize("limit", [0, 40, 5_000, 40_000, 300_000, 1 << 26])
def test_files_that_may_not_grow(place: Path, limit: int) -> None:
    """Under the system's own limit on the size of files, what fits is kept, the rest is not; the next run finds a whole
    cache.
    """
    count, told = run(LIMITED, place, limit).split(maxsplit=1)
    there = int(count)
    assert told == ("[]\n" if there == 60 else f"['{codes.CACHE_UNUSABLE}']\n")
    assert (there == 60) == (limit == 1 << 26 or (place.suffix == "" and limit >= 40_000))
    store, heard = opened(place)
    found = dict(store.entries("proof"))
    assert len(found) >= there and all(each == value(each["number"], 400) for each in found.values())
    store.put_many("proof", [(key(n), value(n)) for n in range(60)])
    assert check_right(store) == 60 and heard.said == []
    assert list(place.parent.rglob("*.part")) == []


def test_a_database_that_is_full(tmp_path: Path) -> None:
    """When the database may take no more pages, what is there stays readable, and nothing more is kept; told once."""
    place = filled(tmp_path / "proofs.sqlite", 30)
    store, heard = opened(place)
    assert isinstance(store._backend, SqliteBackend)
    connection = store._backend._connected()
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + 5}")
    for number in range(30, 60):
        store.put("proof", key(number), value(number))
    assert 30 <= check_right(store) < 60 and not store.storing
    assert heard.codes == [codes.CACHE_UNUSABLE] and "full" in heard.said[0].message
    store.close()
    again, heard = opened(place)
    again.put_many("proof", [(key(n), value(n)) for n in range(60)])
    assert check_right(again) == 60 and heard.said == []


@one_in(4)
@pytest.mark.parametrize("name", ["open", "write", "replace", "mkdir"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO], ids=lambda c: errno.errorcode[c])
def test_a_full_disk_at_every_step(tmp_path: Path, code: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever step of writing a file cannot be done, no half of it is left, what is there is read, and later runs
    keep it.
    """
    place = filled(tmp_path / "proofs")
    store, heard = opened(place)
    owner, step = (Path, "write_bytes") if name in ("open", "write") else (os, name)
    real: Callable[..., Any] = getattr(owner, step)

    def full(*arguments: Any, **named: Any) -> Any:
        if str(place) not in str(arguments):
            return real(*arguments, **named)
        if name == "write":
            real(arguments[0], b"half")
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(owner, step, full)
        store.put("proof", key(100), value(100))
        store.put("proof", key(101), value(101))
        assert (
            heard.codes == [codes.CACHE_UNUSABLE] and os.strerror(code) in heard.said[0].message and not store.storing
        )
        assert check_right(store) == 60 and store.get("proof", key(100)) is None
    assert list(tmp_path.rglob("*.part")) == []
    again, heard = opened(place)
    again.put("proof", key(100), value(100))
    assert again.get("proof", key(100)) == value(100) and heard.said == []


def test_a_place_that_cannot_be_made(tmp_path: Path) -> None:
    """Below a file, or in /proc, nothing can be kept: every question is answered by nothing, and it is told once."""
    (tmp_path / "file").touch()
    for parent in (tmp_path / "file", Path("/proc/nowhere")):
        for name in PLACES:
            store, heard = opened(parent / name)
            assert not store.usable and not store.storing
            store.put("proof", key(1), value(1))
            assert store.get("proof", key(1)) is None and list(store.entries("proof")) == []
            assert (
                store.info(key(-1)) is None
                and store.clear() is None
                and store.set_aside("proof", key(1), value(1)) is None
            )
            store.close()
            assert heard.codes == [codes.CACHE_UNUSABLE], name


# As a user without rights: what is there can be read, and nothing is kept.
PROTECTED = """
import os, sys
said = []
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
store = ProofStore.open(sys.argv[1], said.append)
there = [store.get("proof", key(n)) == value(n) for n in range(60)]
store.put("proof", key(100), value(100))
store.put("proof", key(101), value(101))
print(sum(there), store.get("proof", key(100)), [d.code for d in said])
"""


@pytest.fixture
def common() -> Iterator[Path]:
    """A folder that every user can come to, as those of other tests are not."""
    folder = Path(tempfile.mkdtemp(prefix="layoutproof-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def protect(place: Path, mode: int) -> None:
    """Take rights from a cache, and from the folder in which it is."""
    for path in [*place.parent.rglob("*"), place.parent]:
        path.chmod(mode if path.is_dir() else mode & 0o444)


@pytest.mark.parametrize("name", PLACES)
def test_a_cache_that_can_only_be_read(common: Path, name: str) -> None:
    """A read-only cache gives what it has; one warning says that nothing more is kept."""
    place = filled(common / "there" / name)
    protect(place, 0o555)
    try:
        assert run(PROTECTED, place) == f"60 None ['{codes.CACHE_UNUSABLE}']\n"
    finally:
        protect(place, 0o755)
    assert check_right(opened(place)[0]) == 60


@pytest.mark.parametrize("name", PLACES)
def test_a_cache_without_any_rights(common: Path, name: str) -> None:
    """A cache that may not even be read is not used, which is told once."""
    place = filled(common / "there" / name)
    protect(place, 0o000)
    try:
        assert run(PROTECTED, place) == f"0 None ['{codes.CACHE_UNUSABLE}']\n"
    finally:
        for path in (place.parent, place):
            path.chmod(0o755)
        protect(place, 0o755)


def test_a_log_that_cannot_be_written(common: Path) -> None:
    """A database whose last user was killed has entries in its log; who may not write cannot read it, and does not read
    half.
    """
    place = common / "there" / "proofs.sqlite"
    code = (
        "import os, sys\ns = ProofStore.open(sys.argv[1])\ns.put('proof', key(1), value(1))\n"
        "print('done', flush=True)\n"
    )
    assert start(f"{code}os.kill(os.getpid(), 9)", place).communicate()[0] == "done\n"
    assert place.with_name("proofs.sqlite-wal").stat().st_size > 0
    protect(place, 0o555)
    try:
        assert run(PROTECTED, place) == f"0 None ['{codes.CACHE_UNUSABLE}']\n"
    finally:
        protect(place, 0o755)
    store, heard = opened(place)
    assert store.get("proof", key(1)) == value(1) and heard.said == []


def test_what_the_system_is_to_blame_for_is_no_damage(tmp_path: Path) -> None:
    """A database error that the system is to blame for sets nothing aside."""
    place = filled(tmp_path / "proofs.sqlite")
    store, heard = opened(place)
    assert isinstance(store._backend, SqliteBackend)
    store._backend._connected().execute("PRAGMA query_only = ON")
    store.put("proof", key(100), value(100))
    assert heard.codes == [codes.CACHE_UNUSABLE] and not list(tmp_path.glob("*.damaged-*"))
    assert check_right(store) == 60
