"""Full disks: the kernel works and its report says so, or an error says what to do; no partial file is left."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.lowering.runtime.test_native import copy, script
from tests.shares import one_in
from tests.tree import ROOT

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.runtime.build_c import build_c
from layoutproof.lowering.runtime.compiler import find_compiler

LIMITED = """
import resource, sys
import numpy as np
from tests.lowering.runtime.test_native import copy
from layoutproof.lowering.runtime.build_c import build_c
from layoutproof.ir.diagnostic import LayoutproofError
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    kernel = build_c(copy(), check=False)
    assert np.array_equal(kernel(np.arange(4, dtype=np.float32)), np.arange(4))
    print("works", kernel.report.notes)
except LayoutproofError as problem:
    print(problem.diagnostics[0].code)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("LAYOUTPROOF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def is_right(kernel: Any) -> bool:
    """Whether a copying kernel copies."""
    return bool(np.array_equal(np.asarray(kernel(np.arange(4, dtype=np.float32))), np.arange(4)))


def refusing(real: Callable[..., Any], cache: Path, code: int, wanted: Callable[[str], bool]) -> Callable[..., Any]:
    """`real`, which fails on paths below the cache whose names are `wanted`."""

    def refuse(*arguments: Any, **named: Any) -> Any:
        paths = [str(a) for a in (*arguments, named.get("dir", "")) if isinstance(a, str | Path)]
        if any(p.startswith(str(cache)) and wanted(p) for p in paths):
            raise OSError(code, os.strerror(code))
        return real(*arguments, **named)

    return refuse


@one_in(42)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO], ids=lambda c: errno.errorcode[c])
@pytest.mark.parametrize(
    ("place", "wanted"),
    [
        ("os.mkdir", lambda _: True),
        ("os.open", lambda path: path.endswith("lock")),
        ("io.open", lambda path: path.endswith(".part")),
        ("os.replace", lambda path: path.endswith(".c")),
        ("os.replace", lambda path: path.endswith(".so")),
    ],
    ids=["folder", "lock", "file", "source", "library"],
)
def test_no_room_in_the_cache(
    code: int, place: str, wanted: Callable[[str], bool], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At whichever step the cache cannot be written, the kernel works, and the next one, with room, is kept."""
    find_compiler()
    module, name = place.split(".")
    with monkeypatch.context() as patch:
        target = sys.modules[module]
        patch.setattr(target, name, refusing(getattr(target, name), cache, code, wanted))
        kernel = build_c(copy(), check=False)
    assert is_right(kernel)
    assert list(cache.rglob("*.part")) == []
    if wanted(str(cache / "lock")) and place == "os.open":
        assert kernel.report.notes == ()  # without the lock the kernel is kept all the same
    else:
        assert any(os.strerror(code) in note and "not kept" in note for note in kernel.report.notes)
        assert kernel.report.library_path is None and list(cache.rglob("*.so")) == []
    again = build_c(copy(), check=False)
    assert is_right(again) and again.report.notes == () and len(list(cache.rglob("*.so"))) == 1


@one_in(21)
@pytest.mark.parametrize("limit", [0, 100, 2_000, 12_000, 1 << 24])
def test_files_that_may_not_grow(limit: int, cache: Path) -> None:
    """Under the system's own limit on the size of files, in every process that takes part: an error with a code, or a
    kernel.
    """
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(limit)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env=os.environ,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.strip()
    assert said == "works ()" if limit == 1 << 24 else said in (codes.NOWHERE_TO_BUILD, codes.COMPILER_FAILED), said
    assert list(cache.rglob("*.part")) == []
    assert is_right(build_c(copy(), check=False))


@pytest.mark.parametrize("stage", ["probe.c", "copy.c"])
@pytest.mark.parametrize("words", ["final link failed: No space left on device", "cc1: error: Disk quota exceeded"])
def test_a_compiler_without_room(stage: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that cannot write is neither broken nor lacks a feature: the error names the folder's setting."""
    body = f'case "$*" in *{stage}*) echo "{words}" >&2; exit 1;; esac; exec cc "$@"'
    monkeypatch.setenv("CC", str(script(tmp_path, "cramped", body)))
    with pytest.raises(LayoutproofError, match="TMPDIR") as caught:
        build_c(copy(), check=False)
    assert caught.value.diagnostics[0].code == codes.NOWHERE_TO_BUILD and words in str(caught.value)


def test_nowhere_for_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With neither a cache nor room for the source beside it there is an error, and no half of a file."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("LAYOUTPROOF_CACHE", "/proc/nowhere")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    find_compiler()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(LayoutproofError, match="the generated source cannot be written") as caught:
        build_c(copy(), check=False)
    assert caught.value.diagnostics[0].code == codes.NOWHERE_TO_BUILD
    assert list((tmp_path / "temporary").iterdir()) == []
