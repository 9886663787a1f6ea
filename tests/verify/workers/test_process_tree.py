"""Who is below a process, and what it holds, on systems of both kinds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import mmap
from pathlib import Path

import pytest

from layoutproof.verify.workers import supervisor
from layoutproof.verify.workers.supervisor import descendants, resident_bytes

# A process that starts another one, says its number, and waits for its input to end.
PARENT = """
import subprocess, sys
work = "import sys; held = b'x' * (50 << 20); print(flush=True); sys.stdin.read()"
child = subprocess.Popen([sys.executable, "-c", work],
                         stdout=subprocess.PIPE, start_new_session=True)
child.stdout.readline()
print(child.pid, flush=True)
sys.stdin.read()
"""


@contextmanager
def family() -> Iterator[tuple[int, int]]:
    """A child and a grandchild of this process; the grandchild holds fifty megabytes."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", PARENT], stdin=pipe, stdout=pipe, text=True) as child:
        assert child.stdout is not None
        yield child.pid, int(child.stdout.readline())


def test_descendants_are_found() -> None:
    """Children of children are found, with what they hold, in whatever session they are."""
    with family() as (child, grandchild):
        found = descendants(os.getpid())
        assert set(found) >= {child, grandchild} and found[grandchild] > 50 << 20
        assert set(descendants(child)) == {grandchild} and descendants(grandchild) == {}


def test_descendants_as_ps_lists_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no /proc, the listing of `ps` says the same."""
    rows = ((1, 0, 9000), (10, 1, 100), (11, 10, 200), (12, 11, 300), (13, 1, 400), (14, 10, 0))
    listing = "".join(f"{number:5} {parent:5} {memory:5}\n" for number, parent, memory in rows)
    monkeypatch.setattr(supervisor, "_PROC", Path("/no/such/folder"))
    monkeypatch.setattr(subprocess, "run", lambda command, **how: subprocess.CompletedProcess(command, 0, listing, ""))
    assert descendants(10) == {11: 200 << 10, 14: 0, 12: 300 << 10}
    assert descendants(12) == {} and descendants(99) == {}


def test_memory_of_a_process() -> None:
    """What this process holds is told, and of one that is gone nothing."""
    before = resident_bytes()
    # Memory of its own: what Python had and has no use for now would not add to what is held.
    with mmap(-1, 30 << 20) as held:
        held.write(b"1" * len(held))
        assert resident_bytes() > before + (len(held) * 2 // 3)
    assert resident_bytes((1 << 22) + 1) == 0
