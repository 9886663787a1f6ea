"""Every float32 argument of a math function, as emitted C computes it, beside a reference: the C library, and MPFR near
a middle.

`python -m tests.ir.functions.exhaustive exp log` goes through all 2**32 arguments and prints a line for each function;
needs MPFR.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from layoutproof.ir.functions.definitions import DEFINITIONS
from layoutproof.lowering.codegen.c_helpers import helper_text

_DRIVER = r"""
/* Usage: PROGRAM first last: arguments by their bits. */
static int reference_by_mpfr(float x, float *result) {
    mpfr_t a, b;
    mpfr_inits2(300, a, b, (mpfr_ptr)0);
    mpfr_set_flt(a, x, MPFR_RNDN);
    MULTIPLE;
    *result = mpfr_get_flt(b, MPFR_RNDN);
    mpfr_clears(a, b, (mpfr_ptr)0);
    return 0;
}

static float from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static int same(float a, float b) {
    return (a != a && b != b) || (a == b && signbit(a) == signbit(b));
}

#define BLOCK 4096
int main(int count, char **arguments) {
    uint64_t first = strtoull(arguments[1], 0, 0), last = strtoull(arguments[2], 0, 0);
    uint64_t near = 0, wrong = 0, inputs = 0;
    static float x[BLOCK], y[BLOCK];
    for (uint64_t start = first; start < last; start += BLOCK) {
        int size = (int)(last - start < BLOCK ? last - start : BLOCK);
        for (int i = 0; i < size; ++i) {
            x[i] = from_bits((uint32_t)(start + i));
        }
        for (int i = 0; i < size; ++i) {
            y[i] = OURS(x[i]);
        }
        for (int i = 0; i < size; ++i) {
            if (!(LIMIT)) {
                continue;
            }
            ++inputs;
            double library = LIBRARY;
            float low = (float)(library * (1.0 - 0x1p-40)), high = (float)(library * (1.0 + 0x1p-40));
            float right = (float)library;
            if (!same(low, high)) {
                ++near;
                reference_by_mpfr(x[i], &right);
            }
            if (!same(y[i], right)) {
                ++wrong;
                if (wrong <= 400) {
                    printf("wrong %a %a %a\n", x[i], y[i], right);
                }
            }
        }
    }
    printf("done %llu %llu %llu\n", (unsigned long long)inputs, (unsigned long long)near, (unsigned long long)wrong);
    return 0;
}
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many arguments were gone through, how many were left to MPFR, how many results were wrong, and some of those:
    x, ours, right.
    """

    name: str
    inputs: int
    near: int
    wrong: int
    examples: tuple[tuple[str, str, str], ...]


def source(name: str) -> str:
    """The C program for one function."""
    library = {"sigmoid": "1.0 / (1.0 + exp(-(double)x[i]))", "rsqrt": "1.0 / sqrt(x[i])"}.get(
        name, f"{name}((double)x[i])"
    )
    multiple = {
        "sigmoid": "mpfr_neg(a, a, MPFR_RNDN), mpfr_exp(a, a, MPFR_RNDN), mpfr_add_ui(a, a, 1, MPFR_RNDN), "
        "mpfr_ui_div(b, 1, a, MPFR_RNDN)",
        "rsqrt": "mpfr_rec_sqrt(b, a, MPFR_RNDN)",
    }.get(name, f"mpfr_{name}(b, a, MPFR_RNDN)")
    limit = DEFINITIONS[name].limit if name in DEFINITIONS else None
    return "\n".join(
        (
            "#include <math.h>\n#include <mpfr.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
            "#include <string.h>",
            *([] if name == "sqrt" else [helper_text([f"lp_{name}_f32"])]),
            f"#define OURS {'sqrtf' if name == 'sqrt' else f'lp_{name}_f32'}",
            f"#define LIBRARY {library}",
            f"#define MULTIPLE {multiple}",
            f"#define LIMIT {'1' if limit is None else f'!(fabs((double)x[i]) > {limit.hex()})'}",
            _DRIVER,
        )
    )


def run(name: str, first: int = 0, last: int = 1 << 32) -> Outcome:
    """Go through the arguments with bits from `first` up to `last`."""
    with tempfile.TemporaryDirectory() as folder:
        text, program = Path(folder, "check.c"), Path(folder, "check")
        text.write_text(source(name), encoding="utf-8")
        flags = [
            "-std=c11",
            "-O3",
            "-ffp-contract=off",
            "-fno-math-errno",
            "-fno-trapping-math",
            "-fno-builtin-exp",
            "-march=native",
        ]
        subprocess.run(["cc", *flags, "-o", str(program), str(text), "-lmpfr", "-lgmp", "-lm"], check=True)
        done = subprocess.run([str(program), str(first), str(last)], check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in done.splitlines()]
    examples = tuple((x, y, right) for kind, x, y, right in lines if kind == "wrong")
    inputs, near, wrong = (int(word) for word in lines[-1][1:])
    return Outcome(name, inputs, near, wrong, examples)


def main(names: list[str]) -> None:
    """Print a line for each function, and its wrong results."""
    for name in names:
        found = run(name)
        print(f"{found.name}: {found.inputs:,} arguments, {found.near:,} by MPFR, {found.wrong:,} wrong", flush=True)
        for x, ours, right in found.examples:
            print(f"    {x} {ours} {right}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ["sqrt", *DEFINITIONS])
