"""`layoutproof devices`: the OpenCL devices of this machine and their capabilities."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from layoutproof.cli.options import result_options


@click.command("devices")
@click.option("--device", metavar="NAME", help="Only the one that a part of its name chooses, as `run --device` does.")
@result_options
def devices_command(device: str | None, output_format: str, output: Path | None) -> int:
    """List the OpenCL devices that kernels can run on, with their images and their float arithmetic.

    The one marked is used unless another is named: by `--device`, or by the environment variable
    LAYOUTPROOF_OPENCL_DEVICE.
    """
    from layoutproof.cli.output import check_output, tell
    from layoutproof.cli.render.device_table import devices_to_list, render_devices
    from layoutproof.lowering.runtime.opencl.devices import devices, find_device

    check_output(output)
    chosen = find_device(device)
    found = devices() if device is None else (chosen,)
    tell(found, output_format, output, partial(devices_to_list, chosen=chosen), partial(render_devices, chosen=chosen))
    return 0
