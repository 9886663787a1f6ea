"""What `map` does: everything that can be said of one index map on one shape, told."""

from __future__ import annotations

import json
from pathlib import Path

from layoutproof.cli.output import check_writable, emit, exit_code, show
from layoutproof.cli.render.text import render_map
from layoutproof.cli.values import read_index_map
from layoutproof.ir.map_text import parse_shape
from layoutproof.verify.maps import Box, check_map


def tell_map(
    index_map: str, shape: str, where: str | None, box: str, physical_shape: str | None, output_format: str, output: Path | None
) -> int:
    """Check a map as the options of `map` say, which these are, and return the exit code. Raises LayoutproofError for bad input."""
    if output is not None:
        check_writable(output)
    logical = parse_shape(shape)
    wanted = parse_shape(physical_shape) if physical_shape is not None else None
    chosen: Box = "tight" if box == "tight" else "digits"
    report = check_map(read_index_map(index_map, logical), logical, where, box=chosen, physical_shape=wanted)
    if output_format == "json":
        emit(json.dumps(report.to_dict(), indent=2) + "\n", output)
    elif output is not None:
        emit(render_map(report), output)
    else:
        show(render_map(report, markup=True))
    return exit_code(report.injective.status)
