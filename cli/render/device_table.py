"""OpenCL devices, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.markup import escape

from layoutproof.lowering.runtime.opencl.devices import Device

_HEADINGS = (
    "",
    "device",
    "platform",
    "OpenCL",
    "images",
    "layers",
    "written and read",
    "fp16",
    "fp64",
    "subnormals",
    "correct division",
)


def devices_to_list(found: Sequence[Device], chosen: Device) -> list[dict[str, Any]]:
    """Each device as JSON has it. Image sizes are in texels, memory in bytes; `subnormals` and `correct_division` are
    of float32.
    """
    return [_to_dict(device, number == found.index(chosen)) for number, device in enumerate(found)]


def _to_dict(device: Device, is_chosen: bool) -> dict[str, Any]:
    images = device.images
    return {
        "platform": device.platform,
        "device": device.name,
        "version": device.version,
        "driver": device.driver,
        "default": is_chosen,
        "images": images is not None,
        "largest_image": None
        if images is None
        else {"width": images.width, "height": images.height, "layers": images.layers},
        "read_write_images": device.read_write_images,
        "fp16": device.fp16,
        "fp64": device.fp64,
        "subnormals": device.subnormals,
        "correct_division": device.correct_division,
        "memory": device.memory,
        "largest_buffer": device.largest_buffer,
    }


def render_devices(found: Sequence[Device], chosen: Device, *, markup: bool = False) -> str:
    """One line per device under headings, which are bold with `markup`."""
    rows = [_HEADINGS, *(_row(device, number == found.index(chosen)) for number, device in enumerate(found))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    if markup:
        lines = [f"[bold]{lines[0]}[/]", *(escape(line) for line in lines[1:])]
    return "\n".join(lines) + "\n"


def _row(device: Device, is_chosen: bool) -> tuple[str, ...]:
    images = device.images
    numbers = ".".join(str(number) for number in device.version_number)
    return (
        "*" if is_chosen else "",
        device.name,
        device.platform,
        numbers,
        "none" if images is None else f"{images.width}x{images.height}",
        "" if images is None else str(images.layers),
        _yes(device.read_write_images),
        _yes(device.fp16),
        _yes(device.fp64),
        "kept" if device.subnormals else "flushed",
        _yes(device.correct_division),
    )


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"
