"""The interface of generated code as plain data for JSON: parameters, shapes, layouts, launches, preconditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr
from layoutproof.ir.index_map import index_map_text
from layoutproof.ir.visit import free_variables
from layoutproof.lowering.codegen.c import ERRORS, FLAGS, CSource
from layoutproof.lowering.codegen.c_types import storage_type
from layoutproof.lowering.codegen.calling_convention import Parameter
from layoutproof.lowering.codegen.opencl.cl_helpers import Image, KernelArgument, LocalArgument, OpenCLSource
from layoutproof.lowering.codegen.requirements import is_expressible
from layoutproof.lowering.runtime.array_layouts import Layout
from layoutproof.lowering.runtime.call_arguments import Assumption, Duty, extent_text

Layouts = Mapping[str, Layout]

FUNCTION, HOST, CALLER = (
    "checked by the function at every call",
    "to be checked by the host before a launch",
    "not checked",
)
"""Who sees to an assumption, where no Python does."""


def c_interface(source: CSource, layouts: Layouts, assumptions: Iterable[Assumption]) -> dict[str, Any]:
    """The C function: its name, its parameters in order with their C names and types, its flags and results."""
    names = {p.name: p.c_name for p in source.parameters if p.buffer is None and not p.dtype.is_float}
    parameters = [{**_parameter(p, layouts), "c_name": p.c_name, "c_type": _c_type(p)} for p in source.parameters]
    return {
        "entry": source.entry,
        "parameters": parameters,
        "results": {"0": "done", **{str(code): meaning for code, (_, meaning) in ERRORS.items()}},
        "index_bits": source.index_bits,
        "flags": list(FLAGS),
        "openmp": source.uses_openmp,
        "assumptions": [_assumption(a, _sees_to(a, names)) for a in assumptions],
    }


def opencl_interface(source: OpenCLSource, layouts: Layouts, assumptions: Iterable[Assumption]) -> dict[str, Any]:
    """The OpenCL kernels in the order of their launches, with arguments and work sizes, and the memory to allocate.

    Sizes are numbers, or texts over the scalar parameters with `//` rounding down; a launch with a size of 0 is left
    out.
    """
    return {
        "launches": [
            {
                "kernel": launch.name,
                "arguments": [_argument(argument) for argument in launch.arguments],
                "global_size": _sizes(launch.global_size),
                "local_size": None if launch.local_size is None else _sizes(launch.local_size),
                "local_bytes": _size(launch.local_bytes),
            }
            for launch in source.launches
        ],
        "parameters": [_parameter(p, layouts) for p in source.parameters],
        "temporaries": [_temporary(memory) for memory in source.temporaries],
        "index_bits": source.index_bits,
        "extensions": list(source.extensions),
        "assumptions": [_assumption(a, HOST if a.duty is Duty.CHECKED else CALLER) for a in assumptions],
    }


def _sees_to(assumption: Assumption, names: Mapping[str, str]) -> str:
    """Whether the C function checks it; `names` are the C names of the integer parameters."""
    requirement = assumption.requirement
    checked = assumption.duty is Duty.CHECKED and (requirement is None or is_expressible(requirement, names))
    return FUNCTION if checked else CALLER


def _assumption(assumption: Assumption, duty: str) -> dict[str, str]:
    return {"text": assumption.text, "duty": duty}


def _parameter(parameter: Parameter, layouts: Layouts) -> dict[str, Any]:
    if parameter.buffer is None:
        limits = parameter.bounds
        return {
            "name": parameter.name,
            "kind": "extent" if parameter.is_symbol else "scalar",
            "type": str(parameter.dtype),
            "least": None if limits is None else limits.low,
            "largest": None if limits is None else limits.high,
        }
    layout = layouts.get(parameter.name)
    steps = layout.steps if layout is not None else ()
    return {
        "name": parameter.name,
        "kind": "buffer",
        "type": str(parameter.dtype),
        "shape": _sizes(parameter.buffer.shape),
        "reads": parameter.reads,
        "writes": parameter.writes,
        "logical_shape": _sizes(layout.logical_shape if layout is not None else parameter.buffer.shape),
        "layout": [{"index_map": index_map_text(step.index_map), "padding": step.contract} for step in steps],
    }


def _c_type(parameter: Parameter) -> str:
    element = storage_type(parameter.dtype)
    return element if parameter.buffer is None else f"{element} *" if parameter.writes else f"const {element} *"


def _argument(argument: KernelArgument | LocalArgument | Parameter) -> dict[str, Any]:
    if isinstance(argument, Parameter):
        return {"name": argument.name, "kind": "scalar", "type": str(argument.dtype)}
    if isinstance(argument, LocalArgument):
        buffer = argument.buffer
        return {"name": buffer.name, "kind": "local", "type": str(buffer.dtype), "shape": _sizes(buffer.shape)}
    if argument.image is None:
        return {"name": argument.name, "kind": "buffer", "access": argument.access}
    return {"name": argument.name, "access": argument.access, **_image(argument.image)}


def _image(image: Image) -> dict[str, Any]:
    return {
        "kind": image.kind,
        "channel_order": image.channel_order,
        "channel_type": image.channel_type,
        "width": _size(image.width),
        "height": _size(image.height),
        "layers": None if image.layers is None else _size(image.layers),
    }


def _temporary(memory: Buffer | Image) -> dict[str, Any]:
    buffer = memory.buffer if isinstance(memory, Image) else memory
    about = _image(memory) if isinstance(memory, Image) else {"kind": "buffer"}
    return {"name": buffer.name, "type": str(buffer.dtype), "shape": _sizes(buffer.shape), **about}


def _sizes(extents: Sequence[Expr]) -> list[int | str]:
    return [_size(extent) for extent in extents]


def _size(extent: Expr) -> int | str:
    return extent_text(extent) if free_variables(extent) else int(evaluate(extent, {}))
