"""pocl loads no machine code from a folder that others may write to."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.shares import one_in

from layoutproof.lowering.runtime.opencl.devices import POCL_VARIABLE, driver_cache_folder, use_private_driver_cache

BUILD = """
import layoutproof as lp
func = lp.loads('''
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = A[i]
''')
lp.Schedule(func).build("opencl", check=False, device="pocl")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache of pocl, which no device was asked for yet."""
    place = tmp_path / "kcache"
    place.mkdir(mode=0o700)
    monkeypatch.setenv(POCL_VARIABLE, str(place))
    use_private_driver_cache.cache_clear()
    yield place
    use_private_driver_cache.cache_clear()


def test_an_own_folder_is_used(folder: Path) -> None:
    """Where this user alone can write, pocl keeps its cache, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        use_private_driver_cache()
    assert driver_cache_folder() == folder


def test_a_shared_folder_is_not_used(folder: Path) -> None:
    """Where everybody can write, the process has a folder of its own, and the reason is told."""
    folder.chmod(0o777)
    with pytest.warns(RuntimeWarning, match=f"{folder}: .* can be written by everybody"):
        use_private_driver_cache()
    assert driver_cache_folder() != folder and driver_cache_folder().stat().st_mode & 0o077 == 0


@one_in(14)
@pytest.mark.parametrize("shared", [False, True])
def test_pocl_compiles_into_the_folder_that_it_may_use(folder: Path, shared: bool) -> None:
    """A build leaves its kernel in the cache that is this user's alone, and nothing in one that is not."""
    folder.chmod(0o777 if shared else 0o700)
    done = subprocess.run([sys.executable, "-c", BUILD], capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    assert ("no kernel is loaded from pocl's cache" in done.stderr) is shared
    assert any(folder.iterdir()) is not shared


def test_places_are_those_of_pocl(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its variable, then the cache of the user, then that in the home folder, then a folder below /tmp."""
    for name in (POCL_VARIABLE, "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(name, f"/{name}")
    found = []
    for name in (POCL_VARIABLE, "XDG_CACHE_HOME", "HOME"):
        found.append(driver_cache_folder().as_posix())
        monkeypatch.delenv(name)
    found.append(driver_cache_folder().as_posix())
    expected = [f"/{POCL_VARIABLE}", "/XDG_CACHE_HOME/pocl/kcache", "/HOME/.cache/pocl/kcache", "/tmp/pocl/kcache"]
    assert found == expected
