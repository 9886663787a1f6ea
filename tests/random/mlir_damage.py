"""Damaged texts of MLIR: characters, words and lines that are left out, doubled, swapped, or taken from elsewhere."""

from __future__ import annotations

import re
from random import Random

_WORDS = re.compile(r"\s+|[%#@^!]?[\w.$-]+|.", re.DOTALL)
_NUMBERS = ("-1", "0", "1", "7", "64", "4294967296", "9223372036854775808", "-9223372036854775809", "1.0e+400", "0x1F")


def damaged(random: Random, text: str) -> str:
    """The text with one to three kinds of damage."""
    for _ in range(random.choice((1, 1, 2, 3))):
        text = random.choice((_character, _word, _word, _word, _line, _number, _cut))(random, text)
    return text


def _character(random: Random, text: str) -> str:
    at = random.randrange(len(text) + 1)
    return text[:at] + random.choice(("", "%", "<", ">", "(", "}", '"', "\\", "#", "é", "\0", "0")) + text[at + 1 :]


def _word(random: Random, text: str) -> str:
    words = _WORDS.findall(text)
    if len(words) < 2:
        return text
    one, other = random.randrange(len(words)), random.randrange(len(words))
    kind = random.choice(("drop", "double", "swap", "copy"))
    if kind == "drop":
        words[one] = ""
    elif kind == "double":
        words[one] *= 2
    elif kind == "swap":
        words[one], words[other] = words[other], words[one]
    else:
        words[one] = words[other]
    return "".join(words)


def _line(random: Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    kind = random.choice(("drop", "double", "move"))
    if kind == "drop":
        del lines[one]
    elif kind == "double":
        lines.insert(one, lines[one])
    else:
        lines.insert(other, lines.pop(one))
    return "".join(lines)


def _number(random: Random, text: str) -> str:
    found = list(re.finditer(r"\d+", text))
    if not found:
        return text
    one = random.choice(found)
    return text[: one.start()] + random.choice(_NUMBERS) + text[one.end() :]


def _cut(random: Random, text: str) -> str:
    return text[: random.randrange(len(text) + 1)]
