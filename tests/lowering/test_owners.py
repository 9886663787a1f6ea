"""A cache that somebody else may write to is not used: by owner and mode of the file and of every folder above it."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.lowering.proof_cache.caches import PLACES, Heard, key, value
from tests.lowering.runtime.test_native import copy
from tests.shares import one_in

from layoutproof.lowering import codes
from layoutproof.lowering.owners import VARIABLE, Owners, _reasons, make_private, others_may_write, trusted_owners
from layoutproof.lowering.proof_cache.store import ProofStore
from layoutproof.lowering.runtime.build_c import build_c

PLANTED = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void run(void) {{ fclose(fopen("{mark}", "w")); }}
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of kernels."""
    monkeypatch.setenv("LAYOUTPROOF_CACHE", str(tmp_path / "above" / "cache"))
    return tmp_path / "above" / "cache"


@one_in(4)
@pytest.mark.parametrize("above", [0, 1, 2, 3])
def test_a_planted_library_is_not_loaded(above: int, cache: Path, tmp_path: Path) -> None:
    """A library with a right name runs when it is loaded; where everybody may write to its folder, or to one above, it
    is not.
    """
    own = build_c(copy(), check=False).report.library_path
    assert own is not None
    mark = tmp_path / "mark"
    source, library = tmp_path / "planted.c", tmp_path / "planted.so"
    source.write_text(PLANTED.format(mark=mark) + Path(own).with_name("copy.c").read_text())
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-lm"], check=True)
    folder = Path(own).parent
    Path(own).unlink()
    (folder / f"{hashlib.sha256(library.read_bytes()).hexdigest()}.so").write_bytes(library.read_bytes())
    open_one = [folder, *folder.parents][above]
    open_one.chmod(0o777)
    with pytest.warns(RuntimeWarning, match=f"no kernel is loaded from .*{open_one} can be written by everybody"):
        kernel = build_c(copy(), check=False)
    assert not mark.exists() and not kernel.report.reused and "is not kept" in " ".join(kernel.report.notes)
    assert np.array_equal(np.asarray(kernel(np.arange(4, dtype=np.float32))), np.arange(4))
    open_one.chmod(0o700)
    if above == 0:  # what it is kept from
        build_c(copy(), check=False)
        assert mark.exists()


@pytest.mark.parametrize("place", PLACES)
def test_a_proof_cache_that_all_may_write_is_not_used(place: str, tmp_path: Path) -> None:
    """It is not read, with a warning that names the folder and the remedy."""
    folder = tmp_path / "shared"
    folder.mkdir()
    store = ProofStore.open(str(folder / place))
    store.put("proof", key(1), value(1))
    assert store.get("proof", key(1)) == value(1)
    store.close()
    folder.chmod(0o777)
    heard = Heard()
    other = ProofStore.open(str(folder / place), heard)
    assert not other.usable and other.get("proof", key(1)) is None
    (told,) = heard.said
    assert told.code == codes.CACHE_UNUSABLE and f"{folder} can be written by everybody" in told.message
    assert told.help is not None and VARIABLE in told.help


def test_an_entry_that_all_may_write_is_not_used(tmp_path: Path) -> None:
    """An entry's own file counts, whatever its folder."""
    store = ProofStore.open(str(tmp_path / "proofs"))
    store.put("proof", key(1), value(1))
    (entry,) = (tmp_path / "proofs" / "proof").rglob(key(1))
    entry.chmod(0o666)
    heard = Heard()
    other = ProofStore.open(str(tmp_path / "proofs"), heard)
    assert other.get("proof", key(1)) is None and heard.codes == [codes.CACHE_UNUSABLE]


FOLDER, STICKY = stat.S_IFDIR | 0o755, stat.S_IFDIR | 0o1777


@pytest.mark.parametrize(
    ("mode", "user", "group", "last", "reason"),
    [
        (FOLDER, 1000, 1000, True, None),
        (FOLDER, 0, 0, False, None),
        (FOLDER, 65533, 1000, True, "belongs to the user 65533"),
        (FOLDER, 65533, 1000, False, "belongs to the user 65533"),
        (FOLDER | 0o020, 1000, 65533, False, "can be written by the group 65533"),
        (FOLDER | 0o020, 1000, 1000, False, None),
        (FOLDER | 0o002, 1000, 1000, False, "can be written by everybody"),
        (STICKY, 0, 0, False, None),
        (STICKY, 0, 0, True, "can be written by everybody"),
        (STICKY, 65533, 0, False, "belongs to the user 65533"),
        (stat.S_IFREG | 0o1666, 1000, 1000, False, "can be written by everybody"),
    ],
)
def test_who_else_may_write(mode: int, user: int, group: int, last: bool, reason: str | None) -> None:
    """Owner and mode, for a user 1000 with a group of their own; a sticky folder above is fine, as /tmp is."""
    found = os.stat_result((mode, 1, 1, 1, user, group, 0, 0, 0, 0))
    told = next(_reasons(found, Owners(frozenset({0, 1000}), frozenset({0, 1000})), last), None)
    assert told == reason


def test_others_are_named_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Users and groups that the variable names are trusted; a name that does not exist is a reason to refuse."""
    there = trusted_owners("@65533, 65534", 65532)
    assert there == Owners(frozenset({0, 65532, 65534}), frozenset({0, 65533}))
    monkeypatch.setenv(VARIABLE, "nobody-of-this-name")
    assert "and there is none on this system" in str(others_may_write(tmp_path))


def test_links_are_followed(tmp_path: Path) -> None:
    """A link into a folder that all may write is refused for its target, and one in such a folder for its place."""
    for name in ("open", "own"):
        (tmp_path / name).mkdir()
    (tmp_path / "open").chmod(0o777)
    make_private(tmp_path / "open" / "inner")
    (tmp_path / "own" / "link").symlink_to(tmp_path / "open" / "inner")
    (tmp_path / "open" / "link").symlink_to(tmp_path / "own")
    for link in (tmp_path / "own" / "link", tmp_path / "open" / "link"):
        assert f"{tmp_path / 'open'} can be written by everybody" == others_may_write(link)
    assert others_may_write(tmp_path / "own") is None


def test_new_folders_are_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the mask of the process is, no other may write to a folder that is made."""
    before = os.umask(0)
    try:
        make_private(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a", "a/b")] == [0o700, 0o700]
