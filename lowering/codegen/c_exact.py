"""Helpers of generated C for sums, products and quotients of 64 bits that say when they are not the exact ones."""

from __future__ import annotations

from collections.abc import Mapping

from layoutproof.lowering.codegen.c_template import Helper


def _exact_helper(name: str, refused: str, result: str, needs: tuple[str, ...] = ()) -> Helper:
    return Helper(
        f"""static inline int64_t {name}(int64_t a, int64_t b, bool *inexact) {{
    if ({refused}) {{
        *inexact = true;
        return 0;
    }}
    return {result};
}}""",
        needs,
    )


_NO_QUOTIENT = "b == 0 || (b == -1 && a == INT64_MIN)"

EXACT_HELPERS: Mapping[str, Helper] = {
    "lp_exact_add": _exact_helper("lp_exact_add", "(b > 0 && a > INT64_MAX - b) || (b < 0 && a < INT64_MIN - b)", "a + b"),
    "lp_exact_sub": _exact_helper("lp_exact_sub", "(b < 0 && a > INT64_MAX + b) || (b > 0 && a < INT64_MIN + b)", "a - b"),
    "lp_exact_mul": _exact_helper(
        "lp_exact_mul",
        "a > 0 ? (b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a)\n"
        "              : a < 0 && (b > 0 ? a < INT64_MIN / b : b < 0 && (a == INT64_MIN || b < INT64_MAX / a))",
        "a * b",
    ),
    "lp_exact_floordiv": _exact_helper("lp_exact_floordiv", _NO_QUOTIENT, "lp_floordiv_i64(a, b)", ("lp_floordiv_i64",)),
    "lp_exact_floormod": _exact_helper("lp_exact_floormod", "b == 0", "b == -1 ? 0 : lp_floormod_i64(a, b)", ("lp_floormod_i64",)),
    "lp_exact_truncdiv": _exact_helper("lp_exact_truncdiv", _NO_QUOTIENT, "a / b"),
    "lp_exact_truncmod": _exact_helper("lp_exact_truncmod", "b == 0", "b == -1 ? 0 : a % b"),
    "lp_exact_u64": Helper(
        """static inline int64_t lp_exact_u64(uint64_t a, bool *inexact) {
    *inexact = *inexact || a > (uint64_t)INT64_MAX;
    return *inexact ? 0 : (int64_t)a;
}"""
    ),
}
