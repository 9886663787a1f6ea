"""`layoutproof demo`: the product in a minute, on a convolution with 70 channels."""

from __future__ import annotations

from pathlib import Path

import click

from layoutproof.cli.options import file_path


@click.command("demo")
@click.option("-o", "--output", type=file_path, default=Path("demo-output"), show_default=True, help="Folder for what it writes.")
def demo(output: Path) -> int:
    """Take a real conv2d with 70 channels from NHWC to padded NCHW4c: prove, transform, flatten, draw, compile, run, compare.

    Programs, C source and pictures are saved in the output folder.
    """
    from layoutproof.cli.demonstration import demonstrate

    return demonstrate(output)
