"""The HTML report of a gate's run: one page that needs nothing else."""

from layoutproof.cli.render.gate.html.page import render_html

__all__ = ["render_html"]
