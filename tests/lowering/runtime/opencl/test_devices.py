"""Finding OpenCL devices: by default, by name, by the environment, and what is said where there is none or no way to
them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyopencl
import pytest
from tests.lowering.runtime.opencl.sources import default_device
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.runtime.opencl import devices as module
from layoutproof.lowering.runtime.opencl.devices import VARIABLE, Device, devices, find_device


@pytest.fixture(autouse=True)
def no_device_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of who runs the tests names no device."""
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def several(monkeypatch: pytest.MonkeyPatch) -> tuple[Device, ...]:
    """A machine with two graphics cards of one name, another one, and pocl behind them."""
    pocl = default_device()
    card = replace(pocl, platform="Vendor CUDA", name="Vendor GTX 3090", is_pocl=False)
    other = replace(card, name="Vendor GTX 3090 Ti")
    processor = replace(pocl, platform="Other OpenCL", is_pocl=False)
    found = (card, card, other, processor, pocl)
    monkeypatch.setattr(module, "devices", lambda: found)
    return found


def test_pocl_is_there() -> None:
    """The registry's pocl is found without any setting, with images of the largest profile and IEEE's float32."""
    device = default_device()
    assert device in devices() and device.is_pocl
    assert device.images is not None and min(device.images.width, device.images.height) >= 16384
    assert device.subnormals and device.correct_division and device.fp64 and device.read_write_images
    assert device.version_number >= (3, 0) and device.title == f"{device.name} ({device.platform})"


def test_the_default_is_pocl(several: tuple[Device, ...]) -> None:
    """Whatever else is there, tests and first steps run on pocl; without it, on the first device."""
    assert find_device() is several[-1]


def test_the_first_device_without_pocl(several: tuple[Device, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has only a vendor's driver uses it."""
    monkeypatch.setattr(module, "devices", lambda: several[:3])
    assert find_device() is several[0]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("3090 Ti", 2),
        ("Vendor GTX 3090", 0),
        ("vendor gtx 3090 (vendor cuda)", 0),
        ("Other", 3),
        ("POCL", 4),
        ("portable", 4),
        (" gtx 3090 ti ", 2),
    ],
)
def test_a_part_of_a_name(several: tuple[Device, ...], name: str, number: int) -> None:
    """A part of the device's or the platform's name, in any case; a whole name beats longer ones; two alike are as good
    as one.
    """
    assert find_device(name) is several[number]


def test_the_environment_names_a_device(several: tuple[Device, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable is used where the call says nothing."""
    monkeypatch.setenv(VARIABLE, "3090 ti")
    assert find_device() is several[2] and find_device("other") is several[3]


CARDS = "Vendor GTX 3090 (Vendor CUDA); Vendor GTX 3090 Ti (Vendor CUDA)"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("vendor", f"the OpenCL device 'vendor' could be any of 2: {CARDS}"),
        ("mali", "the OpenCL device 'mali' is not there"),
        ("", "the OpenCL device '' is not there"),
    ],
)
def test_names_of_none_or_several(several: tuple[Device, ...], name: str, message: str) -> None:
    """The error lists what there is."""
    with pytest.raises(LayoutproofError) as caught:
        find_device(name)
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == (codes.WHICH_DEVICE, message)
    assert diagnostic.help is not None and ("say more" in diagnostic.help or CARDS in diagnostic.help)


def test_a_wrong_name_in_the_environment(several: tuple[Device, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable is named, so that one knows where the name comes from."""
    monkeypatch.setenv(VARIABLE, "mali")
    with pytest.raises(LayoutproofError, match=f"the environment variable {VARIABLE} names, 'mali', is not there"):
        find_device()


def told(call: Callable[[], Any]) -> str:
    """What a call that is refused says."""
    with pytest.raises(LayoutproofError) as caught:
        call()
    return str(caught.value)


def test_no_pyopencl(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing package is said with the command that installs it."""
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    assert told(find_device) == (
        "error[LP440]: the OpenCL target needs the package pyopencl, which is not installed\n"
        "  = help: pip install 'layoutproof[opencl]'"
    )


def test_pyopencl_that_does_not_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that is there and does not load says why."""

    class Broken:
        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name == "pyopencl":
                raise ImportError("libOpenCL.so.1: cannot open shared object file")

    monkeypatch.delitem(sys.modules, "pyopencl")
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    assert told(find_device) == (
        "error[LP440]: the package pyopencl does not load: libOpenCL.so.1: cannot open shared object file\n"
        "  = help: pip install 'layoutproof[opencl]' in a fresh environment"
    )


def test_no_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loader's own word for a machine without drivers becomes one that helps."""

    def nothing() -> list[Any]:
        raise pyopencl.LogicError(_record("clGetPlatformIDs", -1001))

    monkeypatch.setattr(pyopencl, "get_platforms", nothing)
    assert devices() == ()
    assert told(find_device) == (
        "error[LP441]: there is no OpenCL device on this machine\n"
        "  = help: pip install 'layoutproof[opencl]' installs pocl, which runs on the processor; a graphics card "
        "needs its vendor's driver"
    )


def test_platforms_without_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver without its hardware is passed over; one that fails otherwise is named."""
    for code, expected in ((-1, None), (-6, "the OpenCL platform Vendor does not list its devices")):

        def refuse(code: int = code) -> list[Any]:
            raise pyopencl.RuntimeError(_record("clGetDeviceIDs", code))

        empty = SimpleNamespace(name="Vendor", get_devices=refuse)
        real = default_device().handle.platform
        monkeypatch.setattr(pyopencl, "get_platforms", lambda empty=empty, real=real: [empty, real])
        if expected is None:
            assert find_device().is_pocl
        else:
            assert expected in told(find_device)


def test_a_device_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that refuses a question that every driver answers is named."""

    class Silent:
        @property
        def extensions(self) -> str:
            raise pyopencl.LogicError(_record("clGetDeviceInfo", -30))

    platform = SimpleNamespace(name="Vendor", get_devices=lambda: [Silent()])
    monkeypatch.setattr(pyopencl, "get_platforms", lambda: [platform])
    message = (
        "a device of the OpenCL platform Vendor does not say what it can do: clGetDeviceInfo failed: INVALID_VALUE"
    )
    assert message in told(find_device)


def _record(routine: str, code: int) -> Any:
    return pyopencl._cl._ErrorRecord(msg="", code=code, routine=routine)


@one_in(4)
def test_pyopencl_is_imported_late() -> None:
    """Neither the package, nor a schedule, nor a C kernel loads pyopencl; listing devices does."""
    text = (
        "import sys, layoutproof\n"
        "from layoutproof.lowering.schedule.schedule import Schedule\n"
        "import layoutproof.lowering.runtime.build_c, layoutproof.lowering.runtime.opencl.build_opencl, "
        "layoutproof.cli.run_result\n"
        "early = 'pyopencl' in sys.modules\n"
        "from layoutproof.lowering.runtime.opencl.devices import devices\n"
        "devices()\n"
        "print(early, 'pyopencl' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
