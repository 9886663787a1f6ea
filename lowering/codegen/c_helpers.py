"""Small C functions that generated code calls where C's own operators mean something else than the program's.

Only those that a kernel uses are written into it, each after what it needs. Their meaning is that of `ir/semantics.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from layoutproof.lowering.codegen.c_exact import EXACT_HELPERS
from layoutproof.lowering.codegen.c_functions import FUNCTION_HELPERS
from layoutproof.lowering.codegen.c_half import HALF_HELPERS
from layoutproof.lowering.codegen.c_memory import MEMORY_HELPERS
from layoutproof.lowering.codegen.c_stream_text import STREAM_HELPERS
from layoutproof.lowering.codegen.c_template import Helper
from layoutproof.lowering.codegen.c_types import SUFFIX, CType
from layoutproof.lowering.codegen.c_vector_helpers import SWITCH, vector_helper


def _floor_division(suffix: str, ctype: str) -> dict[str, Helper]:
    return {
        f"lp_floordiv_{suffix}": Helper(
            f"""/* The quotient rounded down; C rounds to zero. */
static inline {ctype} lp_floordiv_{suffix}({ctype} a, {ctype} b) {{
    {ctype} q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}}"""
        ),
        f"lp_floormod_{suffix}": Helper(
            f"""/* The remainder with the sign of the divisor; C's has the dividend's. */
static inline {ctype} lp_floormod_{suffix}({ctype} a, {ctype} b) {{
    {ctype} r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}}"""
        ),
    }


def _wrapping(suffix: str, ctype: str) -> dict[str, Helper]:
    unsigned = f"u{ctype}"
    found = {
        f"lp_{name}_{suffix}": Helper(
            f"""/* Wraps where it overflows. */
static inline {ctype} lp_{name}_{suffix}({ctype} a, {ctype} b) {{
    return ({ctype})(({unsigned})a {symbol} ({unsigned})b);
}}"""
        )
        for name, symbol in (("add", "+"), ("sub", "-"), ("mul", "*"))
    }
    found[f"lp_shl_{suffix}"] = Helper(
        f"""/* Drops the bits that leave on the left. */
static inline {ctype} lp_shl_{suffix}({ctype} a, {ctype} b) {{
    return ({ctype})(({unsigned})a << b);
}}"""
    )
    found[f"lp_abs_{suffix}"] = Helper(
        f"""/* The least integer has no positive counterpart and stays itself. */
static inline {ctype} lp_abs_{suffix}({ctype} a) {{
    return a < 0 ? ({ctype})(({unsigned})0 - ({unsigned})a) : a;
}}"""
    )
    return found


def _choosing(suffix: str, ctype: str) -> dict[str, Helper]:
    return {
        f"lp_{name}_{suffix}": Helper(
            f"""static inline {ctype} lp_{name}_{suffix}({ctype} a, {ctype} b) {{
    return a {symbol} b ? a : b;
}}"""
        )
        for name, symbol in (("max", ">"), ("min", "<"))
    }


def _float_functions(suffix: str, ctype: str) -> dict[str, Helper]:
    found: dict[str, Helper] = {}
    for name, symbol, lower in (("max", ">", "a"), ("min", "<", "b")):
        other = "b" if lower == "a" else "a"
        found[f"lp_{name}imum_{suffix}"] = Helper(
            f"""/* IEEE 754-2019 {name}imum: a NaN wins, and -0 is less than +0. */
static inline {ctype} lp_{name}imum_{suffix}({ctype} a, {ctype} b) {{
    if (a != a || b != b) {{
        return a + b;
    }}
    return a == b ? (signbit(a) ? {other} : {lower}) : (a {symbol} b ? a : b);
}}"""
        )
        found[f"lp_f{name}_{suffix}"] = Helper(
            f"""/* A number wins over a NaN, and -0 is less than +0. */
static inline {ctype} lp_f{name}_{suffix}({ctype} a, {ctype} b) {{
    return a != a ? b : b != b ? a : lp_{name}imum_{suffix}(a, b);
}}""",
            (f"lp_{name}imum_{suffix}",),
        )
    return found


def _all_helpers() -> dict[str, Helper]:
    found: dict[str, Helper] = {}
    for suffix, ctype in (("i32", "int32_t"), ("i64", "int64_t")):
        found |= _floor_division(suffix, ctype) | _wrapping(suffix, ctype)
    for ctype in CType:
        found |= _choosing(SUFFIX[ctype], ctype.value)
    for suffix, ctype in (("f32", "float"), ("f64", "double")):
        found |= _float_functions(suffix, ctype)
    return {**found, **HALF_HELPERS, **MEMORY_HELPERS, **EXACT_HELPERS, **FUNCTION_HELPERS, **STREAM_HELPERS, "LP_VECTORS": SWITCH}


HELPERS: Mapping[str, Helper] = _all_helpers()


def find_helper(name: str) -> Helper:
    """The helper of a name; those on vectors are made as they are asked for. Raises KeyError for an unknown one."""
    return HELPERS[name] if name in HELPERS else vector_helper(name)


def helper_text(used: Iterable[str], find: Callable[[str], Helper] = find_helper) -> str:
    """The text of the helpers named and of all that they need, each once, needed ones first. Raises KeyError for an unknown one."""
    done: dict[str, None] = {}

    def add(name: str) -> None:
        if name not in done:
            for needed in find(name).needs:
                add(needed)
            done[name] = None

    for name in sorted(used):
        add(name)
    return "\n\n".join(find(name).text for name in done)
