"""`layoutproof devices`: the OpenCL devices of this machine, and what each can do."""

from __future__ import annotations

from pathlib import Path

import click

from layoutproof.cli.options import format_option, output_option


@click.command("devices")
@click.option("--device", metavar="NAME", help="Only the one that a part of its name chooses, as `run --device` does.")
@format_option("text", "json")
@output_option
def devices_command(device: str | None, output_format: str, output: Path | None) -> int:
    """List the OpenCL devices that kernels can run on, with their images and their float arithmetic.

    The one marked is used unless another is named: by `--device`, or by the environment variable LAYOUTPROOF_OPENCL_DEVICE.
    """
    from layoutproof.cli.device_list import list_devices

    return list_devices(device, output_format, output)
