"""Every kernel that other tests build, under the sanitizers: those tests again, with kernels compiled to be watched
inside of Python.
"""

import os
import subprocess
import sys

import pytest
from tests.shares import one_in
from tests.tree import ROOT

# What starts OpenCL, or compares a build's command, is left out: its kernels are built by others too.
SUITES: dict[str, tuple[str, ...]] = {
    "codegen": (
        "tests/lowering/codegen",
        "--ignore=tests/lowering/codegen/sanitize",
        "--ignore=tests/lowering/codegen/opencl",
    ),
    "kernels": (
        "tests/lowering/runtime/test_kernel.py",
        "tests/lowering/runtime/test_selfcheck.py",
        "tests/lowering/runtime/test_dlpack.py",
    ),
    "vectors": ("tests/lowering/vectors",),
    "te": ("tests/lowering/te",),
}


def library(name: str) -> str:
    """The path of one of the compiler's own libraries."""
    done = subprocess.run(["cc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def watched(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Python in a process that has the sanitizers loaded first, with a compiler that makes kernels for them."""
    environment = {
        **os.environ,
        "LD_PRELOAD": f"{library('libasan.so')} {library('libubsan.so')}",
        # The interpreter keeps memory to its end; its own allocator would hide what lies around an array.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "PYTHONMALLOC": "malloc",
        "CC": "cc -fsanitize=address,undefined -fno-sanitize-recover=all",
    }
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=3_000
    )


@pytest.mark.campaign
@pytest.mark.parametrize("suite", SUITES)
def test_kernels_of_other_tests_are_clean(suite: str) -> None:
    """They pass as they do without the sanitizers, which end the process where they have something to say."""
    done = watched("-m", "pytest", "-q", "-p", "no:cacheprovider", *SUITES[suite])
    assert done.returncode == 0, (done.stdout + done.stderr)[-4_000:]


SPOILT = """
import numpy as np, sys
from dataclasses import replace
from tests.lowering.runtime.test_native import copy
from layoutproof.lowering.codegen.c import emit_c
from layoutproof.lowering.runtime import build_c
build_c.emit_c = lambda *a, **k: (lambda s: replace(s, text=s.text.replace("i < 4", "i < 5")))(emit_c(*a, **k))
build_c.build_c(copy(), check=False).raw(np.zeros(4, np.float32), np.zeros(4, np.float32))
"""


@one_in(9)
def test_the_watched_process_sees_a_step_outside() -> None:
    """A kernel that writes one element too far into numpy's memory ends such a process with the sanitizer's report."""
    done = watched("-c", SPOILT)
    assert done.returncode != 0 and "heap-buffer-overflow" in done.stderr
