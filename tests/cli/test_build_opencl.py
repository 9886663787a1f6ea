"""`layoutproof build --target opencl`: a host that has read the two files alone runs the kernels; what textures need is
proved before.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyopencl as cl
import pytest
from tests.cli.calling import OPERATORS, Caller, files_below
from tests.cli.schema import SHAPE, SIZE, TEXT, closed, listed, nullable
from tests.lowering.runtime.opencl.sources import default_device
from tests.shares import one_in

from layoutproof.cli import codes

IMAGE = {"channel_order": TEXT, "channel_type": TEXT, "width": SIZE, "height": SIZE, "layers": nullable(SIZE)}
KINDS = {"enum": ["image2d", "image2d_array"]}
ACCESS = {"enum": ["read_only", "write_only", "read_write"]}
DESCRIPTION = closed(
    launches=listed(
        closed(
            kernel=TEXT,
            arguments=listed(
                {
                    "anyOf": [
                        closed(name=TEXT, kind={"const": "scalar"}, type=TEXT),
                        closed(name=TEXT, kind={"const": "buffer"}, access=ACCESS),
                        closed(name=TEXT, kind={"const": "local"}, type=TEXT, shape=SHAPE),
                        closed(name=TEXT, kind=KINDS, access=ACCESS, **IMAGE),
                    ]
                }
            ),
            global_size={"type": "array", "items": SIZE, "minItems": 1, "maxItems": 3},
            local_size=nullable(listed(SIZE)),
            local_bytes=SIZE,
        )
    ),
    parameters=listed({"type": "object", "required": ["name", "kind", "type"]}),
    temporaries=listed(
        {
            "anyOf": [
                closed(name=TEXT, type=TEXT, shape=SHAPE, kind={"const": "buffer"}),
                closed(name=TEXT, type=TEXT, shape=SHAPE, kind=KINDS, **IMAGE),
            ]
        }
    ),
    index_bits={"enum": [32, 64]},
    extensions=listed(TEXT),
    assumptions=listed(closed(text=TEXT, duty={"enum": ["to be checked by the host before a launch", "not checked"]})),
)

TEXTURE = """
@T.prim_func(s_tir=True)
def copy(a: T.handle, b: T.handle):
    T.func_attr({"tirx.noalias": True, "buffer_axis_separators": {}})
    A = T.match_buffer(a, (8, 16), "float32")
    B = T.match_buffer(b, (8, 16), "float32", scope="global.texture")
    for i, j in T.grid(8, 16):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
"""
TURNED = """from tvm.script import tir as T

@T.prim_func
def turned(a: T.handle, b: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (n, m), "float32")
    T.func_attr({"tirx.noalias": True})
    for i in T.thread_binding(n, thread="blockIdx.x"):
        S = T.decl_buffer((m,), "float32", scope="shared")
        for k in T.thread_binding(m, thread="threadIdx.x"):
            S[k] = A[i, k]
            T.tvm_storage_sync("shared")
            B[i, k] = S[m - 1 - k]
"""
APART = [["set_axis_separators", {"buffer": "B", "separators": [0]}]]
WHOLE_TEXELS = [
    *APART,
    ["split", {"block": "B", "loop": "j", "factors": [None, 4]}],
    ["vectorize", {"block": "B", "loop": "j_1"}],
]
SHARED_TEXELS = [*APART, ["parallel", {"block": "B", "loop": "j"}]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def size(text: int | str, symbols: dict[str, int]) -> int:
    """A size in numbers."""
    return int(eval(str(text), {}, dict(symbols)))


def argument(about: dict[str, Any], memory: dict[str, Any], symbols: dict[str, int]) -> Any:
    """What is passed for an argument: a buffer, the size of a group's memory, a number."""
    if about["kind"] == "buffer":
        return memory[about["name"]]
    dtype = np.dtype(about["type"])
    if about["kind"] == "local":
        return cl.LocalMemory(dtype.itemsize * int(np.prod([size(extent, symbols) for extent in about["shape"]])))
    return dtype.type(symbols[about["name"]])


def launch(folder: Path, arrays: dict[str, Any], symbols: dict[str, int]) -> None:
    """What a host does that has `kernel.cl` and `kernel.json` and knows of plain buffers: run every launch, bring back
    what was written.
    """
    description = json.loads((folder / "kernel.json").read_text())
    context = cl.Context([default_device().handle])
    queue = cl.CommandQueue(context)
    program = cl.Program(context, (folder / "kernel.cl").read_text()).build()
    copy = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    memory: dict[str, Any] = {name: cl.Buffer(context, copy, hostbuf=array) for name, array in arrays.items()}
    for temporary in description["temporaries"]:
        count = int(np.prod([size(extent, symbols) for extent in temporary["shape"]]))
        memory[temporary["name"]] = cl.Buffer(
            context, cl.mem_flags.READ_WRITE, count * np.dtype(temporary["type"]).itemsize
        )
    for each in description["launches"]:
        work = tuple(size(extent, symbols) for extent in each["global_size"])
        passed = [argument(a, memory, symbols) for a in each["arguments"]]
        group = None if each["local_size"] is None else tuple(size(extent, symbols) for extent in each["local_size"])
        if min(work) > 0:
            getattr(program, each["kernel"])(queue, work, group, *passed)
    for parameter in description["parameters"]:
        if parameter["kind"] == "buffer" and parameter["writes"]:
            cl.enqueue_copy(queue, arrays[parameter["name"]], memory[parameter["name"]])


@one_in(10)
@pytest.mark.parametrize("name", ["sym_row_sum", "softmax", "conv2d_nchw"])
def test_a_host_that_has_read_the_files_alone(call: Caller, folder: Path, name: str) -> None:
    """One kernel or several, temporaries between them, symbolic extents: the description is all that it takes."""
    outcome = call(
        "build", str(OPERATORS / f"{name}.py"), "--target", "opencl", "-o", "kernel.cl", "kernel.json", "--no-check"
    )
    assert outcome.code == 0 and set(files_below(folder)) == {"kernel.cl", "kernel.json"}
    description = json.loads((folder / "kernel.json").read_text())
    jsonschema.validate(description, DESCRIPTION)
    symbols = {
        p["name"]: n
        for p, n in zip([p for p in description["parameters"] if p["kind"] == "extent"], (7, 11), strict=False)
    }
    generator = np.random.default_rng(5)
    arrays = {
        p["name"]: generator.standard_normal([size(e, symbols) for e in p["shape"]]).astype(p["type"])
        for p in description["parameters"]
        if p["kind"] == "buffer"
    }
    given = {key: array.copy() for key, array in arrays.items()}
    launch(folder, arrays, symbols)
    names = list(arrays)
    if name == "sym_row_sum":
        assert np.allclose(arrays[names[1]], given[names[0]].sum(axis=1), atol=1e-4)
    elif name == "softmax":
        e = np.exp(given[names[0]] - given[names[0]].max(axis=1, keepdims=True))
        assert np.allclose(arrays[names[1]], e / e.sum(axis=1, keepdims=True), atol=1e-5)
    else:
        padded = np.pad(given["A"], ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        assert np.allclose(arrays[names[2]], np.einsum("nchwyx,fcyx->nfhw", windows, given["W"]), atol=1e-4)


def test_memory_of_a_group_is_described(call: Caller, folder: Path, tmp_path: Path) -> None:
    """Where its size is not constant, the host passes it, and knows how much a group takes in all."""
    (tmp_path / "program.py").write_text(TURNED)
    outcome = call("build", str(tmp_path / "program.py"), "--target", "opencl", "-o", "kernel.cl", "kernel.json")
    assert outcome.code == 0, outcome.err
    description = json.loads((folder / "kernel.json").read_text())
    jsonschema.validate(description, DESCRIPTION)
    (each,) = description["launches"]
    assert {"name": "S", "kind": "local", "type": "float32", "shape": ["m"]} in each["arguments"]
    assert (each["local_size"], each["local_bytes"]) == (["m"], "m*4")
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    arrays = {"A": rows, "B": np.zeros_like(rows)}
    launch(folder, arrays, {"n": 3, "m": 4})
    assert np.array_equal(arrays["B"], rows[:, ::-1])


def test_it_is_compared_by_default(call: Caller, folder: Path) -> None:
    """With a device at hand the kernels run there before anything is written."""
    outcome = call("build", str(OPERATORS / "row_sum.py"), "--target", "opencl", "-o", "kernel.json", "kernel.cl")
    assert outcome.code == 0 and "self-check equal to the interpreter" in outcome.out
    assert "wrote kernel.cl and kernel.json" in outcome.out and "kernels in order: " in outcome.out


@one_in(4)
@pytest.mark.parametrize("check", ["--check", "--no-check"])
def test_textures_are_described(call: Caller, folder: Path, tmp_path: Path, check: str) -> None:
    """A texture's channels, type and size in texels stand with the argument."""
    (tmp_path / "program.py").write_text(TEXTURE)
    (tmp_path / "trace.json").write_text(json.dumps(WHOLE_TEXELS))
    arguments = ("--trace", str(tmp_path / "trace.json"), "--target", "opencl", "-o", "kernel.cl", "kernel.json", check)
    outcome = call("build", str(tmp_path / "program.py"), *arguments)
    assert outcome.code == 0, outcome.err
    description = json.loads((folder / "kernel.json").read_text())
    jsonschema.validate(description, DESCRIPTION)
    ((image,),) = ([a for a in each["arguments"] if a["name"] == "B"] for each in description["launches"])
    assert (image["kind"], image["height"]) == ("image2d", 8) and image["channel_type"] == "FLOAT"


@pytest.mark.parametrize("check", ["--check", "--no-check"])
def test_an_image_too_large_is_refused(call: Caller, folder: Path, tmp_path: Path, check: str) -> None:
    """What a profile does not take is refuted, with a device and without: exit code 1, nothing written."""
    (tmp_path / "program.py").write_text(TEXTURE)
    (tmp_path / "trace.json").write_text(json.dumps(WHOLE_TEXELS))
    arguments = (
        "--trace",
        str(tmp_path / "trace.json"),
        "--target",
        "opencl",
        "-o",
        "kernel.cl",
        "kernel.json",
        check,
        "--device-profile",
        "4096x4",
    )
    outcome = call("build", str(tmp_path / "program.py"), *arguments)
    assert outcome.code == 1 and files_below(folder) == {} and outcome.out.endswith("nothing was written\n")


@pytest.mark.parametrize("check", ["--check", "--no-check"])
def test_texels_that_work_items_share_are_refused(call: Caller, folder: Path, tmp_path: Path, check: str) -> None:
    """Lanes of one texel written by several work items: refuted with the two that clobber each other, with a device and
    without.
    """
    (tmp_path / "program.py").write_text(TEXTURE)
    (tmp_path / "trace.json").write_text(json.dumps(SHARED_TEXELS))
    arguments = (
        "--trace",
        str(tmp_path / "trace.json"),
        "--target",
        "opencl",
        "-o",
        "kernel.cl",
        "kernel.json",
        check,
        "--format",
        "json",
    )
    outcome = call("build", str(tmp_path / "program.py"), *arguments)
    assert (outcome.code, files_below(folder)) == (1, {}) and outcome.json()["verdict"] == "refuted"
    obligations = [v for step in (*outcome.json()["steps"], *outcome.json()["lowering"]) for v in step["obligations"]]
    (clobbered,) = (v for v in obligations if v["status"] == "refuted")
    assert clobbered["counterexample"]["texel"] == [0, 0]


def test_options_of_another_target(call: Caller, folder: Path) -> None:
    """A device for C, a device for nothing, a profile that is none, endings of the other target: exit code 2, nothing
    written.
    """
    row_sum = str(OPERATORS / "row_sum.py")
    for arguments, code in (
        (("--device", "pocl", "-o", "k.c", "k.h"), codes.OTHER_TARGET),
        (("--target", "opencl", "--device", "pocl", "--no-check", "-o", "k.cl", "k.json"), codes.OTHER_TARGET),
        (("--target", "opencl", "-o", "k.c", "k.h"), codes.OUTPUT_PAIR),
        (("--target", "opencl", "--device-profile", "big", "--no-check", "-o", "k.cl", "k.json"), "LP443"),
    ):
        outcome = call("build", row_sum, *arguments)
        assert (outcome.code, outcome.out, files_below(folder)) == (2, "", {}) and code in outcome.err, outcome.err
