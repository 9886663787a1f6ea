"""`layoutproof devices`: the OpenCL devices of this machine, and what each can do."""

from __future__ import annotations

import json
from pathlib import Path

import click

from layoutproof.cli.options import format_option, output_option
from layoutproof.cli.output import check_writable, emit, show
from layoutproof.cli.render.device_table import devices_to_list, render_devices
from layoutproof.lowering.runtime.opencl.devices import devices, find_device


@click.command("devices")
@click.option("--device", metavar="NAME", help="Only the one that a part of its name chooses, as `run --device` does.")
@format_option("text", "json")
@output_option
def devices_command(device: str | None, output_format: str, output: Path | None) -> int:
    """List the OpenCL devices that kernels can run on, with their images and their float arithmetic.

    The one marked is used unless another is named: by `--device`, or by the environment variable LAYOUTPROOF_OPENCL_DEVICE.
    """
    if output is not None:
        check_writable(output)
    chosen = find_device(device)
    found = devices() if device is None else (chosen,)
    if output_format == "json":
        emit(json.dumps(devices_to_list(found, chosen), indent=2) + "\n", output)
    elif output is not None:
        emit(render_devices(found, chosen), output)
    else:
        show(render_devices(found, chosen, markup=True))
    return 0
