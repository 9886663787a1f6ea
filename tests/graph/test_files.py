"""Graphs as files: text and arrays, both whole or neither, whatever happens while they are written."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tests.graph.nets import filled
from tests.shares import one_in

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.graph_files import load_graph, save_graph
from layoutproof.graph.model.graph import Constant, Graph, Value
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import DType


def network(factor: float, size: int = 40) -> Graph:
    """A sum with an array that does not stand in the text."""
    g = GraphBuilder("net")
    weight = g.constant(filled(size, size) * np.float32(factor), "w")
    return g.build(g.add(g.input("x", (size, size)), weight))


def constants(*values: tuple[str, object]) -> Graph:
    """A graph that gives constants, of these names and arrays."""
    made = []
    for name, data in values:
        array = np.asarray(data)
        made.append(Constant(Value(name, array.shape, DType.parse(array.dtype.name)), array))
    return Graph("g", (), tuple(made), (), tuple(name for name, _ in values))


def test_arrays_come_back(tmp_path: Path) -> None:
    """A graph of large constants comes back as it was, and saving it again gives the same bytes."""
    save_graph(network(1.0), tmp_path / "net.py")
    assert load_graph(tmp_path / "net.py") == network(1.0)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert before.keys() == {"net.py", "net.npz"}
    save_graph(load_graph(tmp_path / "net.py"), tmp_path / "net.py")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("size", [4, 1000])
def test_arrays_of_types_that_numpy_does_not_store(tmp_path: Path, size: int) -> None:
    """bfloat16 comes back bit for bit, beside others: zeros of either sign, infinity and NaN too."""
    odd = np.linspace(-3, 3, size).astype(ml_dtypes.bfloat16)
    odd[:4] = [-0.0, np.inf, np.nan, 0.0]
    graph = constants(("a", odd), ("b", np.arange(size, dtype=np.float32)), ("c", np.arange(size) % 2 == 0))
    save_graph(graph, tmp_path / "g.py")
    again = load_graph(tmp_path / "g.py")
    assert again == graph
    assert again.constants[0].data.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(again.constants[0].data.view(np.uint16), odd.view(np.uint16))


@pytest.mark.parametrize("entry", ["a.bfloat16", "a.quaternion", "a.handle"])
def test_bits_that_are_not_of_the_type_behind_the_name(tmp_path: Path, entry: str) -> None:
    """Where an entry's bits are not those of its type, or there is no such type, the file is said to be unreadable."""
    save_graph(constants(("a", np.ones(100, ml_dtypes.bfloat16))), tmp_path / "g.py")
    with zipfile.ZipFile(tmp_path / "g.npz", "w") as archive, archive.open(f"{entry}.npy", "w") as file:
        np.lib.format.write_array(file, np.ones(100, np.uint32))
    with pytest.raises(LayoutproofError, match=r"the arrays in .*g\.npz cannot be read"):
        load_graph(tmp_path / "g.py")


@pytest.mark.parametrize("place", ["none/net.py", "file/net.py", "folder", "protected/net.py"])
def test_where_nothing_can_be_written(tmp_path: Path, place: str) -> None:
    """A folder that is not there, that is a file, or that may not be written to is named; nothing appears."""
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    (tmp_path / "protected").mkdir(mode=0o555)
    with pytest.raises(LayoutproofError, match=r"LP619.*cannot write .*"):
        save_graph(network(1.0), tmp_path / place)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder", "protected"]


def test_a_folder_in_the_place_of_the_arrays(tmp_path: Path) -> None:
    """Where the arrays cannot be written, neither is the text."""
    (tmp_path / "net.npz").mkdir()
    with pytest.raises(LayoutproofError, match=r"cannot write .*net\.npz: it is a directory"):
        save_graph(network(1.0), tmp_path / "net.py")
    assert [path.name for path in tmp_path.iterdir()] == ["net.npz"]


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full while arrays are written leaves what was there, and nothing else."""
    save_graph(network(1.0), tmp_path / "net.py")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(np.lib.format, "write_array", full)
    with pytest.raises(LayoutproofError, match="No space left on device"):
        save_graph(network(2.0), tmp_path / "net.py")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@one_in(4)
def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    """A file that may not grow any more is an error of the system's, told as such; nothing is left."""
    script = (
        "import resource, signal, sys\n"
        "from tests.graph.test_files import network, save_graph\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))\n"
        f"save_graph(network(1.0), {str(tmp_path / 'net.py')!r})\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "error[LP619]: cannot write" in done.stderr and "File too large" in done.stderr
    assert list(tmp_path.iterdir()) == []


@one_in(9)
def test_a_process_that_is_killed(tmp_path: Path) -> None:
    """Killed at any time, a process that saves leaves no text without its arrays under a name that was not there
    before.
    """
    script = (
        "import sys\nfrom pathlib import Path\nfrom tests.graph.test_files import network, save_graph\n"
        "graph = network(1.0, 300)\nprint('ready', flush=True)\nnumber = 0\n"
        f"while True:\n    save_graph(graph, Path({str(tmp_path)!r}) / f'net_{{number}}.py')\n    number += 1\n"
    )
    generator = np.random.default_rng(0)
    texts = 0
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(float(generator.uniform(0.01, 0.15)))
            process.send_signal(signal.SIGKILL)
        wanted = network(1.0, 300)
        for path in tmp_path.glob("net_*.py"):
            assert load_graph(path) == wanted
            texts += 1
        for path in tmp_path.glob("net_*.npz"):
            with zipfile.ZipFile(path) as archive:
                assert archive.testzip() is None
        for path in tmp_path.iterdir():
            path.unlink()
    assert texts > 0
