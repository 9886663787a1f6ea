"""Named math functions as C text: the sequences of `ir/functions`, printed, and a rounding to the type of the call.

Where `LP_EXACT` is 0 they are the library's functions on `float`: in a build that asked for fast ones, and on a device without `double`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from layoutproof.ir.functions.definitions import DEFINITIONS, Definition
from layoutproof.ir.functions.sequence import C, result_name, statements
from layoutproof.lowering.codegen.c_template import Helper

_BITS = {
    "lp_bits": Helper(
        """static inline uint64_t lp_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}"""
    ),
    "lp_number": Helper(
        """static inline double lp_number(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}"""
    ),
}

_ROUNDED: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "f32": ("(float)", "", ()),
    "f16": ("lp_round_f16_from_f64", "lp_round_f16", ("lp_round_f16_from_f64", "lp_round_f16")),
    "bf16": ("lp_round_bf16_from_f64", "lp_round_bf16", ("lp_round_bf16_from_f64", "lp_round_bf16")),
}
"""How a `double` is rounded to a type, and how a `float` is."""

ROUNDED_ONCE = frozenset(DEFINITIONS) | {"pow"}
"""Functions that are computed in `double` for the narrower types, and then rounded."""

_COMPOSED: Mapping[str, str] = {"sigmoid": "1.0f / (1.0f + expf(-x))", "rsqrt": "1.0f / sqrtf(x)"}


def _core(definition: Definition) -> Helper:
    body = "".join(f"    {line};\n" for line in statements(definition.sequence, C, "x"))
    return Helper(
        f"""#if LP_EXACT
/* {definition.name} in float64, close enough to round from. */
static inline double lp_{definition.name}(double x) {{
{body}    return {result_name(definition.sequence)};
}}
#endif""",
        ("LP_EXACT", "lp_bits", "lp_number"),
    )


def _typed(definition: Definition, suffix: str) -> Helper:
    """The function on a `float` that holds a number of the type, correctly rounded."""
    name = definition.name
    from_double, from_float, needs = _ROUNDED[suffix]
    value = f"lp_{name}(x)"
    if definition.limit is not None:
        value = f"fabs((double)x) > {definition.limit.hex()} ? {name}((double)x) : {value}"
    fast = _COMPOSED.get(name, f"{name}f(x)")
    return Helper(
        f"""static inline float lp_{name}_{suffix}(float x) {{
#if LP_EXACT
    return {from_double}({value});
#else
    return {from_float}({fast});
#endif
}}""",
        (f"lp_{name}", "LP_EXACT", *needs),
    )


def _power(suffix: str) -> Helper:
    from_double, from_float, needs = _ROUNDED[suffix]
    return Helper(
        f"""static inline float lp_pow_{suffix}(float x, float y) {{
#if LP_EXACT
    return {from_double}(pow((double)x, (double)y));
#else
    return {from_float}(powf(x, y));
#endif
}}""",
        ("LP_EXACT", *needs),
    )


def _helpers() -> Iterator[tuple[str, Helper]]:
    for name, definition in DEFINITIONS.items():
        yield f"lp_{name}", _core(definition)
        for suffix in _ROUNDED:
            yield f"lp_{name}_{suffix}", _typed(definition, suffix)
    for suffix in _ROUNDED:
        yield f"lp_pow_{suffix}", _power(suffix)


_SWITCH = Helper(
    """/* Math functions: correctly rounded, or (in a build that asked for it) those of the C library. */
#ifdef LP_FAST
#define LP_EXACT 0
#else
#define LP_EXACT 1
#endif"""
)

_DOUBLE = {
    "lp_rsqrt_f64": Helper("static inline double lp_rsqrt_f64(double x) {\n    return 1.0 / sqrt(x);\n}"),
    "lp_sigmoid_f64": Helper(
        """/* Written for each sign apart, so that no step overflows and tiny results keep their digits. */
static inline double lp_sigmoid_f64(double x) {
    double e = exp(-fabs(x));
    return x < 0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
}"""
    ),
}

FUNCTION_HELPERS: Mapping[str, Helper] = {**_BITS, **_DOUBLE, "LP_EXACT": _SWITCH, **dict(_helpers())}
