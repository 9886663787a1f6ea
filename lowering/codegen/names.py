"""Names in generated C: what a program calls its variables, made legal, and made unique in every open block."""

from __future__ import annotations

import keyword as python_keyword
import re
from collections.abc import Iterator
from contextlib import contextmanager

_KEYWORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int long register restrict
return short signed sizeof static struct switch typedef union unsigned void volatile while
_Alignas _Alignof _Atomic _Bool _Complex _Generic _Imaginary _Noreturn _Static_assert _Thread_local
alignas alignof bool constexpr false nullptr static_assert thread_local true typeof typeof_unqual
and and_eq asm bitand bitor catch class compl concept delete explicit export friend mutable namespace new not not_eq operator or
or_eq private protected public template this throw try typeid typename using virtual wchar_t xor xor_eq
"""
_LIBRARY = """
NULL NAN INFINITY HUGE_VAL FLT_EVAL_METHOD EOF errno assert main size_t ptrdiff_t uintptr_t intptr_t linux unix i386
int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t
INT32_MIN INT64_MIN INT32_MAX INT64_MAX INT64_C UINT64_C
malloc calloc free aligned_alloc abort exit memcpy memset memmove abs labs llabs div ldiv signbit isnan isinf isfinite
exp exp2 log log2 log10 sqrt pow tanh sinh cosh sin cos tan atan erf fabs floor ceil round rint trunc fma fmin fmax ldexp frexp copysign
expf exp2f logf log2f log10f sqrtf powf tanhf sinhf coshf sinf cosf tanf atanf erff fabsf floorf ceilf roundf rintf truncf fmaf
fminf fmaxf gamma lgamma tgamma j0 j1 jn y0 y1 yn index rindex remove rename signal printf puts read write open close time clock
error lane
"""
RESERVED = frozenset(_KEYWORDS.split()) | frozenset(_LIBRARY.split())


def sanitise(name: str) -> str:
    """`name` as a C identifier: other characters become `_`, letters outside ASCII their code point."""
    text = re.sub(r"[^0-9A-Za-z_]", lambda m: "_" if m[0] in "._-: " else f"_u{ord(m[0]):x}", name)
    if not text or text[0].isdigit() or text.startswith(("__", "lp_", "LP_")) or re.match(r"_[A-Z]", text):
        text = f"v_{text.lstrip('_')}"
    return text


def entry_name(name: str, reserved: frozenset[str] = RESERVED) -> str:
    """The name of the C function for a program function: `name`, with `_kernel` behind it where C or its library has that name."""
    text = sanitise(name)
    return f"{text}_kernel" if text in reserved or python_keyword.iskeyword(name) else text


class Names:
    """The identifiers of all open blocks. A name stays taken until the block it was declared in is closed, a reserved one always."""

    def __init__(self, taken: tuple[str, ...] = (), reserved: frozenset[str] = RESERVED) -> None:
        self._blocks: list[set[str]] = [set(taken)]
        self._reserved = reserved

    @contextmanager
    def block(self) -> Iterator[None]:
        """A C block: what is declared meanwhile is forgotten afterwards."""
        self._blocks.append(set())
        yield
        self._blocks.pop()

    def declare(self, wanted: str) -> str:
        """A free identifier like `wanted`, taken in the innermost block."""
        base = sanitise(wanted)
        name, number = base, 0
        while name in self._reserved or any(name in block for block in self._blocks):
            number += 1
            name = f"{base}_{number}"
        self._blocks[-1].add(name)
        return name
