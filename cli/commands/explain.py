"""`layoutproof explain`: what the code of a message means, why it matters, an example, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from layoutproof.cli.catalogue import LAYERS, all_codes, meaning_of, sentence_of
from layoutproof.cli.options import result_options
from layoutproof.cli.output import check_output, emit, json_text
from layoutproof.cli.render.explanation import explanation, find


@click.command("explain")
@click.argument("wanted", metavar="[CODE]...", nargs=-1)
@result_options
def explain_command(wanted: Sequence[str], output_format: str, output: Path | None) -> int:
    """What does CODE mean, why does it matter, and what is to be done?

    A CODE is written as messages have it (LP314), in either case, with or without LP. Its beginning (LP31) lists all
    codes that begin so; no code at all lists every one.
    """
    check_output(output)
    found = [find(text) for text in wanted]
    listed = not found or any(len(group) != 1 for group in found)
    chosen = tuple(dict.fromkeys(code for group in found for code in group)) if found else all_codes()
    if output_format == "json":
        emit(json_text([meaning_of(code).to_dict() for code in chosen]), output)
    elif listed:
        emit("\n".join(_list(chosen)) + "\n", output)
    else:
        emit("\n".join(explanation(meaning_of(code)) for code in chosen), output, is_ours=True)
    return 0


def _list(chosen: Sequence[str]) -> Iterator[str]:
    """One line a code, below its layer."""
    layer = ""
    for code in chosen:
        if code[2] != layer:
            if layer:
                yield ""
            layer = code[2]
            yield f"LP{layer}nn: {LAYERS[layer]}"
        yield f"  {code}  {sentence_of(code)}"
