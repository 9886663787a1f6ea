"""Tests that ask TVM or LLVM what a program means run where these are installed; the header says which are not."""

from importlib.util import find_spec

from tests.oracle.installed import has_mlir_runner

WITHOUT_TVM = find_spec("tvm") is None
WITHOUT_LLVM = find_spec("xdsl") is None or not has_mlir_runner()

collect_ignore_glob = [
    *["test_programs.py", "test_thread_sync.py", "topi/test_topi.py"] * WITHOUT_TVM,
    *["test_mlir.py", "hunt/test_mlir_wild.py"] * WITHOUT_LLVM,
]


def pytest_report_header() -> list[str]:
    """Which oracles are missing."""
    missing = ["TVM"] * WITHOUT_TVM + ["mlir-opt and mlir-cpu-runner"] * WITHOUT_LLVM
    return [f"not installed, tests left out: {', '.join(missing)}"] if missing else []
