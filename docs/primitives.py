"""What follows from the passes: the methods of a schedule with the table of all primitives, and the reference page.

A pass is a class below `lowering`, and its section on the page, `### name`, is its place in the list. So a new
primitive is a pass and a section; what can be derived is written here.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field
from importlib import import_module
from pathlib import Path
from typing import Any

from layoutproof.lowering.passes.base import ArgumentKind, Pass, kind_of

ROOT = Path(__file__).resolve().parent.parent
PAGE = "docs/reference/primitives.md"
MODULE = "lowering/schedule/primitives.py"
_WIDTH = 120

_MODULE = '''\
"""All primitives by name, and as methods of a schedule. `python -m docs.generate` writes this file from the passes and
the order of `docs/reference/primitives.md`; it is not edited.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

{imports}

PASSES: Mapping[str, type[Pass]] = {{
    each.primitive: each
    for each in (
{table}
    )
}}


class Primitives(ABC):
    """A program under transformation, with a method for each primitive."""

    @abstractmethod
    def _take(self, kind: type[Pass], /, **arguments: Any) -> Step:
        """Apply the pass with these arguments. Raises IllegalTransform, leaving the program as it was."""

{methods}
'''

_IMPORTED = {
    "layoutproof.lowering.passes.base": ("MapLike", "Pass"),
    "layoutproof.lowering.passes.steps": ("Step",),
}

# What the method takes for an option of the kind; the pass has it as a trace does.
TYPES: Mapping[ArgumentKind, str] = {
    ArgumentKind.NAME: "str",
    ArgumentKind.INDEX_MAP: "MapLike",
    ArgumentKind.PAD_VALUE: "Any",
    ArgumentKind.PAD_VALUES: "Mapping[str, Any] | None",
    ArgumentKind.LAYOUT: "str",
    ArgumentKind.INTEGER: "int",
    ArgumentKind.INTEGERS: "Sequence[int]",
    ArgumentKind.LOOP: "str | int",
    ArgumentKind.LOOPS: "Sequence[str | int]",
    ArgumentKind.FACTORS: "Sequence[int | None]",
    ArgumentKind.CHOICES: "Sequence[int] | None",
    ArgumentKind.FLAG: "bool",
    ArgumentKind.NAMES: "Sequence[str]",
}


def passes() -> Mapping[str, type[Pass]]:
    """The passes by name, in the order of the page. Raises ValueError if passes and sections do not agree."""
    return ordered(found(), _sections((ROOT / PAGE).read_text(encoding="utf-8")))


def found() -> list[type[Pass]]:
    """The passes below `lowering`. Only files with one are imported: others may need the module that is written."""
    for path in sorted((ROOT / "lowering").rglob("*.py")):
        if re.search(r"^class \w+\([^)]*\bPass\b", path.read_text(encoding="utf-8"), re.MULTILINE):
            import_module(".".join(("layoutproof", *path.relative_to(ROOT).with_suffix("").parts)))
    return [each for each in _below(Pass) if each.__module__.startswith("layoutproof.lowering.")]


def _below(kind: type[Any]) -> Iterator[type[Pass]]:
    for each in kind.__subclasses__():
        if not inspect.isabstract(each):
            yield each
        yield from _below(each)


def ordered(kinds: Iterable[type[Pass]], names: Sequence[str]) -> Mapping[str, type[Pass]]:
    """The passes by name, in the order of `names`. Raises ValueError for a name of two passes, a pass without one, a
    name without a pass, and one that stands twice.
    """
    by_name: dict[str, type[Pass]] = {}
    for kind in kinds:
        other = by_name.setdefault(kind.primitive, kind)
        if other is not kind:
            raise ValueError(f"{_place(other)} and {_place(kind)} are both called {kind.primitive!r}")
    for name, kind in by_name.items():
        if name not in names:
            raise ValueError(f"{_place(kind)} has no section: write `### {name}` where it belongs in {PAGE}")
    for name, count in Counter(names).items():
        if name not in by_name:
            raise ValueError(f"{PAGE} has a section `### {name}`, and no pass is called that")
        if count > 1:
            raise ValueError(f"{PAGE} has {count} sections `### {name}`")
    return {name: by_name[name] for name in names}


def _place(kind: type[Pass]) -> str:
    return f"{kind.__module__}.{kind.__name__}"


def _sections(page: str) -> list[str]:
    return re.findall(r"^### (.+)$", page, re.MULTILINE)


# ---- the module


def primitives_module() -> str:
    """The text of `lowering/schedule/primitives.py`."""
    kinds = passes()
    names = {module: list(those) for module, those in _IMPORTED.items()}
    for kind in kinds.values():
        names.setdefault(kind.__module__, []).append(kind.__name__)
    return _MODULE.format(
        imports="\n".join(_import(module, sorted(names[module])) for module in sorted(names)),
        table="\n".join(f"        {kind.__name__}," for kind in kinds.values()),
        methods="\n\n".join(map(_method, kinds.values())),
    )


def _method(kind: type[Pass]) -> str:
    options = kind.options()
    given = [f"{f.name}={f.name}" for f in options]
    return "\n".join(
        (
            _bracketed(f"    def {kind.primitive}(", ["self", *map(_parameter, options)], ") -> Step:"),
            *_docstring(text_of(kind)),
            _bracketed("        return self._take(", [kind.__name__, *given], ")"),
        )
    )


def _parameter(field: Field[Any]) -> str:
    typed = f"{field.name}: {TYPES[kind_of(field)]}"
    if field.default is MISSING:
        return typed
    flat = f"{typed} = {_literal(field.default)}"
    if not isinstance(field.default, tuple) or len(flat) <= _WIDTH - 9:
        return flat
    margin = " " * 8
    return "\n".join((f"{typed} = (", *(f"{margin}    {_literal(each)}," for each in field.default), f"{margin})"))


def _literal(value: object) -> str:
    return repr(value).replace("'", '"')


def _docstring(text: str) -> Iterator[str]:
    """The lines of a method's docstring."""
    margin, quotes = " " * 8, '"""'
    if "\n\n" not in text:
        # The formatter puts the quotes behind a line that is one.
        *lines, last = _wrapped(f"{quotes}{text}", margin, _WIDTH - len(quotes))
        yield from (*lines, f"{last}\n{margin}{quotes}" if lines else f"{last}{quotes}")
        return
    first, *rest = text.split("\n\n")
    yield from _wrapped(f"{quotes}{first}", margin)
    for paragraph in rest:
        yield from ("", *_wrapped(paragraph, margin))
    yield f"{margin}{quotes}"


def _wrapped(paragraph: str, margin: str, width: int = _WIDTH) -> list[str]:
    wrapper = textwrap.TextWrapper(width, margin, margin, break_long_words=False, break_on_hyphens=False)
    return wrapper.wrap(paragraph)


def _bracketed(before: str, parts: Sequence[str], after: str) -> str:
    """Parts between brackets as the formatter has them: in one line, else in a line of their own, else one a line."""
    flat = f"{before}{', '.join(parts)}{after}"
    if len(flat) <= _WIDTH:
        return flat
    margin = " " * (len(before) - len(before.lstrip()))
    inner = f"{margin}    {', '.join(parts)}"
    if len(inner) > _WIDTH:
        inner = "\n".join(f"{margin}    {part}," for part in parts)
    return f"{before}\n{inner}\n{margin}{after}"


def _import(module: str, names: Sequence[str]) -> str:
    flat = f"from {module} import {', '.join(names)}"
    return flat if len(flat) <= _WIDTH else f"from {module} import (\n" + "".join(f"    {n},\n" for n in names) + ")"


# ---- the page


def primitives_page() -> str:
    """The page, with its table and each section's text and arguments as the passes have them.

    Order, groups and the rest of a section, from a heading `####` on, are written by hand.
    """
    kinds = passes()
    head, *sections = re.split(r"^(?=### )", (ROOT / PAGE).read_text(encoding="utf-8"), flags=re.MULTILINE)
    rows = "".join(f"| [`{name}`](#{name}) | {cell(_summary(kind))} |\n" for name, kind in kinds.items())
    start, rule, rest = head.partition("|---|---|\n")
    written = "".join(map(_section, kinds.values(), sections))
    below = re.sub(r"^(\|.*\n)*", "", rest)
    return f"{start}{rule}{rows}{below}{written}".rstrip("\n") + "\n"


def _section(kind: type[Pass], old: str) -> str:
    lines = [f"### {kind.primitive}", "", text_of(kind), ""]
    if kind.options():
        lines += ["| argument | is | default |", "|---|---|---|"]
        lines += [f"| `{f.name}` | {cell(kind_of(f).value)} | {_default(f)} |" for f in kind.options()]
        lines += [""]
    by_hand = re.search(r"^#{2,4} .*", old.partition("\n")[2], re.MULTILINE | re.DOTALL)
    return "\n".join(lines) + "\n" + (by_hand[0] if by_hand is not None else "")


def text_of(kind: type[Pass]) -> str:
    """The documentation of a pass. Raises ValueError where it has none of its own."""
    if not kind.__dict__.get("__doc__") or kind.__doc__ is None or kind.__doc__.startswith(f"{kind.__name__}("):
        raise ValueError(f"{_place(kind)} has no docstring, which is the primitive's documentation")
    return inspect.cleandoc(kind.__doc__)


def _summary(kind: type[Pass]) -> str:
    return text_of(kind).split("\n\n")[0]


def _default(field: Field[Any]) -> str:
    if field.default is MISSING:
        return ""
    value = list(field.default) if isinstance(field.default, tuple) else field.default
    words: Mapping[object, str] = {None: "null", True: "true", False: "false"}
    shown = words[value] if value is None or isinstance(value, bool) else str(value).replace("'", '"')
    return f"`{shown}`"


def cell(text: str) -> str:
    """Text in one cell of a table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()
