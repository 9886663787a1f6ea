"""`layoutproof devices`, and `layoutproof run --target opencl`: tables, JSON, options, and what is said where it cannot
be done.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from tests.cli.calling import OPERATORS, Caller, files_below, steady
from tests.cli.schema import DEVICES, RUN
from tests.conftest import Golden
from tests.shares import one_in

from layoutproof.lowering.runtime.opencl import devices as command
from layoutproof.lowering.runtime.opencl import devices as module
from layoutproof.lowering.runtime.opencl.devices import VARIABLE, Device, ImageLimits, find_device

ROW_SUM = str(OPERATORS / "row_sum.py")


@pytest.fixture(autouse=True)
def no_device_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of who runs the tests names no device."""
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> tuple[Device, ...]:
    """Three devices that need not be there: one with everything, one without images, one that is small."""
    real = find_device("pocl")
    processor = replace(
        real, name="processor", version="OpenCL 3.0 PoCL", driver="3.0", memory=1 << 34, largest_buffer=1 << 33
    )
    old = replace(
        processor,
        platform="Old",
        name="old card",
        version="OpenCL 1.2",
        images=None,
        read_write_images=False,
        is_pocl=False,
    )
    old = replace(old, fp64=False, subnormals=False, correct_division=False)
    small = replace(
        processor, platform="New", name="new card", images=ImageLimits(4096, 8192, 2048), fp16=True, is_pocl=False
    )
    found = (old, processor, small)
    monkeypatch.setattr(module, "devices", lambda: found)
    monkeypatch.setattr(command, "devices", lambda: found)
    return found


@one_in(9)
def test_table(call: Caller, golden: Golden, made_up: tuple[Device, ...]) -> None:
    """One line a device, under headings, the default marked."""
    outcome = call("devices")
    assert (outcome.code, outcome.err) == (0, "")
    golden("cli_devices/table.txt", outcome.out)


def test_json(call: Caller, made_up: tuple[Device, ...]) -> None:
    """Everything that is known of each, by the schema."""
    outcome = call("devices", "--format", "json")
    found = outcome.json()
    jsonschema.validate(found, DEVICES)
    assert [device["default"] for device in found] == [False, True, False]
    assert found[0]["largest_image"] is None and not found[0]["images"] and not found[0]["subnormals"]
    assert found[2]["largest_image"] == {"width": 4096, "height": 8192, "layers": 2048} and found[2]["fp16"]


def test_one_device(call: Caller, made_up: tuple[Device, ...], tmp_path: Path) -> None:
    """`--device` lists the one that it would choose; `-o` writes a file."""
    outcome = call("devices", "--device", "NEW", "--format", "json", "-o", str(tmp_path / "devices.json"))
    assert (outcome.code, outcome.out) == (0, "")
    assert [device["device"] for device in json.loads((tmp_path / "devices.json").read_text())] == ["new card"]


def test_real_devices(call: Caller) -> None:
    """On this machine there is pocl, with images."""
    found = call("devices", "--format", "json").json()
    jsonschema.validate(found, DEVICES)
    assert any(device["platform"] == "Portable Computing Language" and device["images"] for device in found)


def test_no_devices(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without OpenCL, and one without pyopencl, say what to install: exit code 2."""
    with monkeypatch.context() as patch:
        patch.setattr(module, "devices", tuple)
        outcome = call("devices")
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err.startswith("error[LP441]: there is no OpenCL device on this machine")
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    for arguments in (["devices"], ["run", ROW_SUM, "--target", "opencl"]):
        outcome = call(*arguments)
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err == (
            "error[LP440]: the OpenCL target needs the package pyopencl, which is not installed\n"
            "  = help: pip install 'layoutproof[opencl]'\n"
        )


@one_in(9)
def test_run(call: Caller, golden: Golden, tmp_path: Path) -> None:
    """A run on a device, named by a part of its name: verdicts, the device, the comparison; `--emit` writes the
    text.
    """
    emitted = tmp_path / "row_sum.cl"
    outcome = call(
        "run",
        ROW_SUM,
        "--target",
        "opencl",
        "--device",
        "Portable",
        "--device-profile",
        "16384x16384",
        "--emit",
        str(emitted),
    )
    assert (outcome.code, outcome.err) == (0, "")
    golden("cli_run/opencl.txt", settled(outcome.out, OPERATORS))
    assert "__kernel void" in emitted.read_text()


def settled(text: str, folder: Path) -> str:
    """What does not depend on the machine, nor on how many obligations there are."""
    return re.sub(r"\d+ obligations", "N obligations", steady(text, folder)).replace(
        find_device("pocl").title, "DEVICE"
    )


TEXTURE = """
@T.prim_func
def f(A: T.Buffer((6, 8), "float32", scope="global.texture"), B: T.Buffer((6, 8), "float32", scope="global.texture")):
    T.func_attr({"tirx.noalias": True})
    for y, x in T.grid(6, 8):
        with T.block("B"):
            vy, vx = T.axis.remap("SS", [y, x])
            B[vy, vx] = A[vy, vx] * T.float32(2)
"""
STEPS = [
    ["set_axis_separators", {"buffer": "A", "separators": [0]}],
    ["set_axis_separators", {"buffer": "B", "separators": [0]}],
    ["split", {"block": "B", "loop": "x", "factors": [None, 4]}],
    ["vectorize", {"block": "B", "loop": "x_1"}],
    ["parallel", {"block": "B", "loop": "y"}],
]


@pytest.fixture
def texture(tmp_path: Path) -> list[str]:
    """The arguments that run a program over two textures, by whole texels."""
    (tmp_path / "program.py").write_text(TEXTURE)
    (tmp_path / "trace.json").write_text(json.dumps(STEPS))
    return ["run", str(tmp_path / "program.py"), "--trace", str(tmp_path / "trace.json"), "--target", "opencl"]


@one_in(4)
def test_run_with_textures(call: Caller, golden: Golden, texture: list[str], tmp_path: Path) -> None:
    """Textures from the command line: what they need is proved, the device, no fast-math assumption, equal to the
    interpreter.
    """
    outcome = call(*texture, "--format", "json")
    found = outcome.json()
    jsonschema.validate(found, RUN)
    assert outcome.code == 0 and found["verdict"] == "proved" and found["run"]["equal"]
    assert found["build"]["target"] == "opencl" and found["build"]["licences"] == []
    assert found["build"]["device"] == find_device("pocl").title
    assert len(found["build"]["obligations"]) > 8 and all(
        v["status"] == "proved" for v in found["build"]["obligations"]
    )
    golden("cli_run/opencl_textures.txt", settled(call(*texture).out, tmp_path))


def test_textures_that_are_refused(call: Caller, golden: Golden, texture: list[str], tmp_path: Path) -> None:
    """A texture wider than the profile: exit code 1, the obligation with its counterexample, nothing run, no file left
    behind.
    """
    before = files_below(tmp_path)
    outcome = call(*texture, "--device-profile", "1x4096", "--emit", str(tmp_path / "out.cl"))
    assert outcome.code == 1
    golden("cli_run/opencl_refused.txt", settled(outcome.out + outcome.err, tmp_path))
    assert files_below(tmp_path) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--target", "c", "--device", "pocl"],
            "error[LP516]: --device is for --target opencl; --target c has no other device than the processor",
        ),
        (
            ["--device-profile", "4096x4096"],
            "error[LP516]: --device-profile is for --target opencl; --target c has no other device than the processor",
        ),
        (["--target", "opencl", "--device", "mali"], "error[LP442]: the OpenCL device 'mali' is not there"),
        (["--target", "opencl", "--device-profile", "big"], "error[LP443]: the device profile 'big' is not understood"),
        (["--target", "metal"], "Invalid value for '--target': 'metal' is not one of 'c', 'opencl'."),
    ],
)
def test_wrong_options(call: Caller, options: list[str], message: str) -> None:
    """What does not fit the target or the machine is refused before anything is proved: exit code 2."""
    outcome = call("run", ROW_SUM, *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
