"""The build cache: found again, mended when damaged, safe for many processes and for those that die halfway."""

import errno
import os
import signal
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from tests.lowering.runtime.test_native import copy, script
from tests.shares import one_in, some
from tests.tree import ROOT

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.runtime.build_c import build_c, cache_folder
from layoutproof.lowering.runtime.kernel import Kernel

BUILD_AND_RUN = """
import numpy as np
from tests.lowering.runtime.test_native import copy
from layoutproof.lowering.runtime.build_c import build_c
kernel = build_c(copy(), check=False)
assert (kernel(np.arange(4, dtype=np.float32)) == np.arange(4)).all()
print("built", kernel.report.reused, kernel.report.notes)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("LAYOUTPROOF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def works(kernel: Kernel) -> bool:
    """Whether a copying kernel copies."""
    return bool(np.array_equal(np.asarray(kernel(np.arange(4, dtype=np.float32))), np.arange(4)))


def libraries(cache: Path) -> list[Path]:
    """All finished libraries."""
    return sorted(cache.rglob("*.so"))


def start(environment: dict[str, str] | None = None) -> "subprocess.Popen[str]":
    """Another Python that builds and runs the kernel."""
    own = {**os.environ, **(environment if environment is not None else {})}
    return subprocess.Popen(
        [sys.executable, "-c", BUILD_AND_RUN],
        cwd=ROOT,
        env=own,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_second_build_is_found(cache: Path) -> None:
    """The same text, compiler and flags give the library of the first time, with its command and source."""
    first, second = build_c(copy(), check=False), build_c(copy(), check=False)
    assert (first.report.reused, second.report.reused) == (False, True)
    assert first.report.command == second.report.command and len(libraries(cache)) == 1
    assert second.report.source_path is not None and "copy" in Path(second.report.source_path).read_text(
        encoding="utf-8"
    )
    assert works(second)


def test_other_text_flags_or_compiler_are_other_libraries(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the library depends on is part of its place."""
    build_c(copy(), check=False)
    build_c(copy(5), check=False)
    build_c(copy(), check=False, fast=True)
    monkeypatch.setenv("CC", "cc -DOTHER")
    build_c(copy(), check=False)
    assert len(libraries(cache)) == 4


@one_in(4)
@pytest.mark.parametrize("damage", [b"", b"garbage", None])
def test_damaged_library_is_built_again(damage: bytes | None, cache: Path) -> None:
    """Empty, overwritten or with one bit changed: the library is not loaded but replaced."""
    build_c(copy(), check=False)
    (path,) = libraries(cache)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()  # it may be mapped into this process: another file takes its place
    path.write_bytes(damage if damage is not None else bytes(content))
    again = build_c(copy(), check=False)
    assert not again.report.reused and works(again)
    assert build_c(copy(), check=False).report.reused


def test_library_of_another_system_is_built_again(cache: Path) -> None:
    """A file that is whole, but that this system does not load, makes place for one that it does."""
    build_c(copy(), check=False)
    (path,) = libraries(cache)
    path.unlink()
    path.with_name(f"{sha256(b'foreign').hexdigest()}.so").write_bytes(b"foreign")
    again = build_c(copy(), check=False)
    assert works(again) and not again.report.reused


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe half", None])
def test_damaged_source_is_written_again(damage: bytes | None, cache: Path) -> None:
    """The source beside a library is what the library was built from, whatever became of the file meanwhile."""
    first = build_c(copy(), check=False)
    (source,) = cache.rglob("*.c")
    text = source.read_bytes()
    source.unlink()
    if damage is not None:
        source.write_bytes(damage)
    second = build_c(copy(), check=False)
    assert second.report.reused and source.read_bytes() == text and works(second)
    assert second.report.command == first.report.command


def test_a_library_that_does_not_load_is_not_kept(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What a compiler made that the system refuses is an error each time, and leaves the cache without it."""
    odd = script(tmp_path, "odd", 'while [ "$1" != "-o" ]; do shift; done; echo nonsense > "$2"')
    with monkeypatch.context() as patch:
        patch.setenv("CC", str(odd))
        for _ in range(2):
            with pytest.raises(LayoutproofError, match="cannot be loaded"):
                build_c(copy(), check=False)
    assert libraries(cache) == []


@one_in(10)
@pytest.mark.parametrize("count", some((4, 8), 1))
def test_several_processes_at_once(count: int, cache: Path) -> None:
    """All of them build or find the same kernel and run it; nothing unfinished stays behind."""
    processes = [start() for _ in range(count)]
    said = [process.communicate(timeout=100) for process in processes]
    assert [p.returncode for p in processes] == [0] * count, said
    assert all(out.startswith("built") and out.rstrip().endswith("()") for out, _ in said)
    assert len(libraries(cache)) == 1 and list(cache.rglob("*.part")) == []


@one_in(4)
def test_killed_while_compiling(cache: Path, tmp_path: Path) -> None:
    """A process killed in the middle leaves nothing that the next one takes for finished."""
    slow = script(
        tmp_path,
        "slow",
        'case "$*" in *copy.c*) touch ' + str(tmp_path / "compiling") + '; exec sleep 60;; esac; exec cc "$@"',
    )
    process = start({"CC": str(slow)})
    limit = time.monotonic() + 60
    while not (tmp_path / "compiling").exists():
        assert time.monotonic() < limit and process.poll() is None, process.communicate()
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert libraries(cache) == []
    kernel = build_c(copy(), check=False)
    assert works(kernel) and not kernel.report.reused


def test_remains_of_dead_processes_are_swept(cache: Path) -> None:
    """An unfinished file that is hours old goes; a young one may still be written."""
    build_c(copy(), check=False)
    (path,) = libraries(cache)
    old, young = path.parent / ".old.part", path.parent / ".young.part"
    for part in (old, young):
        part.write_bytes(b"half")
    os.utime(old, (0, 0))
    path.unlink()
    assert works(build_c(copy(), check=False))
    assert not old.exists() and young.exists()


def test_cache_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The kernel is built all the same, for this process, and the report says why."""
    (tmp_path / "file").write_text("no folder", encoding="ascii")
    monkeypatch.setenv("LAYOUTPROOF_CACHE", str(tmp_path / "file" / "cache"))
    kernel = build_c(copy(), check=False)
    assert works(kernel) and kernel.report.library_path is None
    assert any("cannot be written" in note for note in kernel.report.notes)


def test_nowhere_to_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """No temporary folder at all is an error that says which setting helps."""

    def nowhere(**_: object) -> str:
        raise FileNotFoundError(errno.ENOENT, "no usable temporary directory")

    monkeypatch.setattr("layoutproof.lowering.runtime.build_c.tempfile.mkdtemp", nowhere)
    with pytest.raises(LayoutproofError, match="TMPDIR") as caught:
        build_c(copy(6), check=False)
    assert caught.value.diagnostics[0].code == codes.NOWHERE_TO_BUILD


def test_folder_of_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment decides, else the user's cache folder."""
    monkeypatch.setenv("LAYOUTPROOF_CACHE", "~/kernels")
    assert cache_folder() == Path.home() / "kernels"
    monkeypatch.delenv("LAYOUTPROOF_CACHE")
    assert "layoutproof" in str(cache_folder())
