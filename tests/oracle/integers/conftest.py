"""Proofs are put to Coq where it is installed (Debian and Ubuntu: `apt install coq`)."""

from tests.oracle.integers import coq

collect_ignore_glob = [] if coq.is_installed() else ["test_coq.py"]
