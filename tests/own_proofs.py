"""Writes the tool's own lemmas, which are kept under proofs/: `python -m tests.own_proofs [--check] FOLDER`.

`make proofs` calls it. With `--check` nothing is written, and a file that is not as it would be written is an error: a
rule that was changed without its lemma shows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from layoutproof.ir.rewrite import Domain, Rule
from layoutproof.lowering.arith.rules import ALL_RULES
from layoutproof.lowering.layout.textures import IMAGE2D, TEXTURE_LAYOUTS
from layoutproof.verify.certificate.lemmas import Layout, Lemma, LemmaFile, layout_lemmas, prove_rule, rule_queries
from layoutproof.verify.certificate.sealed_files import LEMMAS_ENDING

_ABOUT_INDEX = "The simplifier's rules for index arithmetic: true of all integers, with floored division."
_ABOUT_VALUES = "The simplifier's rules for values as they are stored: integers that wrap, floats bit for bit."
_ABOUT_LAYOUTS = (
    "Usual layouts, for all shapes: one place to each index, inside the box, and the inverse and "
    "the padding that are told."
)
_ABOUT_TEXTURES = (
    "Layouts of tensors in textures (`lowering/layout/textures.py`), for all shapes: the same of each of them."
)

LAYOUTS: tuple[Layout, ...] = (
    Layout("NHWC to NCHW", "lambda n, h, w, c: [n, c, h, w]", "n, h, w, c"),
    Layout("NHWC to NCHW4c", "lambda n, h, w, c: [n, c // 4, h, w, c % 4]", "n, h, w, c"),
    Layout("NCHW to NCHW16c", "lambda n, c, h, w: [n, c // 16, h, w, c % 16]", "n, c, h, w"),
    Layout("HWIO to OIHW4i4o", "lambda kh, kw, i, o: [o // 4, i // 4, kh, kw, i % 4, o % 4]", "kh, kw, i, o"),
    Layout("OIHW to OIHW16i16o", "lambda o, i, h, w: [o // 16, i // 16, h, w, i % 16, o % 16]", "o, i, h, w"),
    Layout(
        "OIHW to OIHW4i16o4i", "lambda o, i, h, w: [o // 16, i // 16, h, w, i // 4 % 4, o % 16, i % 4]", "o, i, h, w"
    ),
    Layout("tiles of 16 by 16", "lambda i, j: [i // 16, j // 16, i % 16, j % 16]", "n, m"),
    Layout("rows of 4", "lambda i: [i // 4, i % 4]", "n"),
    Layout("rows of 4, transposed", "lambda i: [i % 4, i // 4]", "n"),
    Layout("image of 4 channels", "lambda n, h, w, c: [n * 64 + h, w, c]", "n, 64, w, 4"),
    Layout("transposition", "lambda i, j: [j, i]", "n, m"),
    Layout("halo of 1", "lambda i, j: [i + 1, j + 1]", "n, m"),
    Layout("every second place", "lambda i: [2 * i]", "n"),
    Layout("skewed", "lambda i, j: [i + j, j]", "n, m"),
    Layout("reversed", "lambda i: [n - 1 - i]", "n"),
    Layout("swizzle of 8 by 8", "lambda i, j: [i, j ^ (i % 8)]", "n, 8"),
    Layout("row-major, 64 columns", "lambda i, j: [i * 64 + j]", "n, 64"),
    Layout("row-major", "lambda i, j: [i * m + j]", "n, m"),
    Layout("row-major, three axes", "lambda i, j, k: [(i * m + j) * l + k]", "n, m, l"),
    Layout("rows of m", "lambda i: [i // m, i % m]", "n * m"),
)

# The other name of a layout needs no lemmas of its own.
TEXTURES: tuple[Layout, ...] = tuple(Layout(t.name, t.text, t.sizes) for t in TEXTURE_LAYOUTS.values() if t != IMAGE2D)


def files() -> Iterator[tuple[str, LemmaFile]]:
    """Every file by its name below the folder."""
    yield f"rules/index{LEMMAS_ENDING}", LemmaFile(_ABOUT_INDEX, tuple(_rules(Domain.INDEX)))
    yield f"rules/values{LEMMAS_ENDING}", LemmaFile(_ABOUT_VALUES, tuple(_rules(Domain.VALUE)))
    for name, about, layouts in (("usual", _ABOUT_LAYOUTS, LAYOUTS), ("textures", _ABOUT_TEXTURES, TEXTURES)):
        lemmas = tuple(lemma for layout in layouts for lemma in layout_lemmas(layout))
        yield f"layouts/{name}{LEMMAS_ENDING}", LemmaFile(about, lemmas)


def _rules(domain: Domain) -> Iterator[Lemma]:
    yield from (_lemma(rule) for rule in ALL_RULES if rule.domain is domain)


def _lemma(rule: Rule) -> Lemma:
    verdict = prove_rule(rule)
    return Lemma(
        rule.name, verdict.claim.text, verdict.status, rule_queries(rule), source=rule.source.partition(":")[0]
    )


def main(arguments: Sequence[str]) -> int:
    """Write the files, or, with `--check`, compare; 1 where one differs."""
    check = "--check" in arguments
    folders = [argument for argument in arguments if argument != "--check"]
    if len(folders) != 1:
        print("usage: python -m tests.own_proofs [--check] FOLDER", file=sys.stderr)
        return 2
    different = []
    for name, file in files():
        path = Path(folders[0]) / name
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            file.save(path)
            print(f"{path}: {len(file.lemmas)} lemmas")
        elif not path.is_file() or LemmaFile.load(path).lemmas != file.lemmas:
            different.append(str(path))
    for path_text in different:
        print(f"{path_text} is not as it would be written: run `make proofs`", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
