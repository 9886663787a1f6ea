"""Compute the coefficients of `ir/functions/coefficients.py`: `python benchmarks/make_coefficients.py >
ir/functions/coefficients.py`.

Each polynomial interpolates its function at the Chebyshev points of its interval, in 80 digits; each coefficient is
then rounded to float64. The effect of that rounding is checked on all inputs (`tests/ir/functions/exhaustive.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath

mp = mpmath.mp
mp.dps = 80
Number = Any


def fit(function: Callable[[Number], Number], low: Number, high: Number, degree: int) -> list[float]:
    """The coefficients, the constant one first, of the interpolation polynomial in the powers of x."""
    n = degree + 1
    points = [(low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * k + 1) / (2 * n)) for k in range(n)]
    rows = mp.matrix(n, n)
    values = mp.matrix(n, 1)
    for i, x in enumerate(points):
        values[i] = function(x)
        for j in range(n):
            rows[i, j] = x**j
    return [float(c) for c in mp.lu_solve(rows, values)]


def series(terms: Callable[[int], Number]) -> Callable[[Number], Number]:
    """A power series as a function, summed until nothing changes."""
    return lambda x: mp.nsum(lambda n: terms(int(n)) * x ** int(n), [0, 80], method="direct")


def parts(value: Number, bits: int, count: int) -> list[float]:
    """A constant as a sum: `count` numbers of `bits` bits each, and the rest."""
    found = []
    for _ in range(count):
        exponent = mp.floor(mp.log(abs(value), 2)) + 1 - bits
        head = mp.floor(value / mp.mpf(2) ** exponent) * mp.mpf(2) ** exponent
        found.append(float(head))
        value -= head
    return [*found, float(value)]


def _tables() -> dict[str, tuple[str, list[float]]]:
    half = mp.log(2) / 2 * mp.mpf("1.0001")
    quarter = mp.pi / 4 * mp.mpf("1.0001")
    root = mp.mpf("0.0295")  # ((sqrt(2) - 1) / (sqrt(2) + 1)) ** 2, and a little more
    wide = mp.mpf("0.1716")  # tan(pi / 8) ** 2, and a little more
    fact = mp.factorial
    return {
        "EXP": (
            "exp(r) = 1 + r + r**2 * p(r) for |r| up to log(2) / 2",
            fit(series(lambda n: 1 / fact(n + 2)), -half, half, 9),
        ),
        "EXP2": (
            "2**r = 1 + r * p(r) for |r| up to 1/2",
            fit(series(lambda n: mp.log(2) ** (n + 1) / fact(n + 1)), mp.mpf("-0.5001"), mp.mpf("0.5001"), 10),
        ),
        "LOG": (
            "log((1 + s) / (1 - s)) = 2 * s + s * w * p(w), w = s**2",
            fit(series(lambda n: mp.mpf(2) / (2 * n + 3)), mp.mpf(0), root, 7),
        ),
        "ATAN": (
            "atan(t) = t + t * w * p(w), w = t**2, for |t| up to tan(pi / 8)",
            fit(series(lambda n: mp.mpf(-1) ** (n + 1) / (2 * n + 3)), mp.mpf(0), wide, 12),
        ),
        "SIN": (
            "sin(r) = r + r * w * p(w), w = r**2, for |r| up to pi / 4",
            fit(series(lambda n: mp.mpf(-1) ** (n + 1) / fact(2 * n + 3)), mp.mpf(0), quarter**2, 6),
        ),
        "COS": (
            "cos(r) = 1 - w / 2 + w**2 * p(w), w = r**2",
            fit(series(lambda n: mp.mpf(-1) ** n / fact(2 * n + 4)), mp.mpf(0), quarter**2, 6),
        ),
        "ERF_NEAR": (
            "erf(x) = x * p(x**2) for |x| up to 1",
            fit(
                series(lambda n: 2 / mp.sqrt(mp.pi) * mp.mpf(-1) ** n / (fact(n) * (2 * n + 1))),
                mp.mpf(0),
                mp.mpf(1),
                14,
            ),
        ),
        "ERF_FAR": (
            "erf(x) = p(x - 2.5) for x from 1 to 4",
            fit(lambda t: mp.erf(t + mp.mpf("2.5")), mp.mpf("-1.5"), mp.mpf("1.5"), 27),
        ),
        "LN2": ("log(2): 40 bits, and the rest", parts(mp.log(2), 40, 1)),
        "LOG2E": ("1 / log(2)", [float(1 / mp.log(2))]),
        "LOG2E_PARTS": ("1 / log(2): 28 bits, and the rest", parts(1 / mp.log(2), 28, 1)),
        "LOG10E_PARTS": ("1 / log(10): 28 bits, and the rest", parts(1 / mp.log(10), 28, 1)),
        "LOG10_2": ("log10(2): 40 bits, and the rest", parts(mp.log(2, 10), 40, 1)),
        "TWO_OVER_PI": ("2 / pi", [float(2 / mp.pi)]),
        "HALF_PI": ("pi / 2: 33 bits, 33 bits, and the rest", parts(mp.pi / 2, 33, 2)),
        "HALF_PI_PARTS": ("pi / 2: 53 bits, and the rest", parts(mp.pi / 2, 53, 1)),
        "QUARTER_PI_PARTS": ("pi / 4: 53 bits, and the rest", parts(mp.pi / 4, 53, 1)),
    }


def main() -> None:
    """Print the module."""
    print('"""Constants of the math functions, as float64 numbers; written by `benchmarks/make_coefficients.py`."""\n')
    print("from __future__ import annotations\n\nfrom typing import Final\n")
    for name, (says, numbers) in _tables().items():
        print(f"{name}: Final = tuple(\n    float.fromhex(text)\n    for text in (")
        for number in numbers:
            print(f'        "{number.hex()}",')
        print(f'    )\n)\n"""{says}."""\n')


if __name__ == "__main__":
    main()
