"""What `devices` does: the OpenCL devices of this machine, found, asked and listed."""

from __future__ import annotations

import json
from pathlib import Path

from layoutproof.cli.output import check_writable, emit, show
from layoutproof.cli.render.device_table import devices_to_list, render_devices
from layoutproof.lowering.runtime.opencl.devices import devices, find_device


def list_devices(device: str | None, output_format: str, output: Path | None) -> int:
    """List devices as the options of `devices` say, which these are; 0. Raises LayoutproofError where there is none."""
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
