"""Tests that ask TVM what a program means run where its wheel is installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("tvm") is not None else ["test_programs.py"]
