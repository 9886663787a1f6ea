"""Random functions of MLIR do here what LLVM's own code for them does. Runs where mlir-opt and mlir-cpu-runner are."""

import pytest

from tests.oracle.mlir_campaign import compare_batch


@pytest.mark.parametrize("seed", [1, 2])
def test_random_functions(seed: int) -> None:
    """Twenty functions in a batch end with the same memories, bit for bit."""
    assert compare_batch(seed) == []
