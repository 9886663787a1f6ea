"""Random programs over textures give on a device what the interpreter gives, bit for bit."""

import numpy as np
import pytest
from tests.lowering.codegen.programs import assert_same
from tests.lowering.runtime.opencl.sources import default_device
from tests.lowering.small_operators import inputs_of
from tests.random.textures import TextureProgram
from tests.shares import one_in

from layoutproof.ir.interp import run
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.codegen.opencl.cl_emit import emit_opencl
from layoutproof.lowering.lower.flatten import FlattenBuffer
from layoutproof.lowering.runtime.kernel import LoweredFunc
from layoutproof.lowering.runtime.opencl.load_opencl import load_opencl


def compare(seed: int) -> None:
    """Run one program both ways. Nothing is proved of its textures first: only the text is tried."""
    func = loads(TextureProgram(seed).text, f"random_{seed}.py")
    given = inputs_of(func, seed)
    expected = run(func, given).arrays
    lowered = FlattenBuffer().propose(func).new
    found = {name: np.array(array) for name, array in given.items()}
    load_opencl(LoweredFunc(lowered), emit_opencl(lowered), default_device(), check=False).raw(**found)
    for name, array in expected.items():
        assert_same(found[name], np.asarray(array), f"seed {seed}, {name}")


@one_in(28)
@pytest.mark.parametrize("first", range(0, 32, 4))
def test_random_textures(first: int) -> None:
    """Four programs, of all types of channels, with images and buffers read and written in many ways."""
    for seed in range(first, first + 4):
        compare(seed)


@pytest.mark.campaign
def test_many_random_textures() -> None:
    """A thousand more."""
    for seed in range(1000, 2000):
        compare(seed)
