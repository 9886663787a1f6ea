"""Constants of the math functions, as float64 numbers; written by `benchmarks/make_coefficients.py`."""

from __future__ import annotations

from typing import Final

EXP: Final = tuple(
    float.fromhex(text)
    for text in (
        "0x1.0000000000001p-1",
        "0x1.5555555555556p-3",
        "0x1.5555555553d63p-5",
        "0x1.11111111109b3p-7",
        "0x1.6c16c1788bd90p-10",
        "0x1.a01a01a7c41d5p-13",
        "0x1.a019b90d2ae7ap-16",
        "0x1.71de0dae63bb3p-19",
        "0x1.289185613a3d6p-22",
        "0x1.af38a9b0ec855p-26",
    )
)
"""exp(r) = 1 + r + r**2 * p(r) for |r| up to log(2) / 2."""

EXP2: Final = tuple(
    float.fromhex(text)
    for text in (
        "0x1.62e42fefa39efp-1",
        "0x1.ebfbdff82c598p-3",
        "0x1.c6b08d704a0c2p-5",
        "0x1.3b2ab6fba1dc6p-7",
        "0x1.5d87fe78a526dp-10",
        "0x1.4309130975155p-13",
        "0x1.ffcbfc6712438p-17",
        "0x1.62bfd46781ef6p-20",
        "0x1.b524fad88ed30p-24",
        "0x1.e6065f532c950p-28",
        "0x1.e9d419696e0e9p-32",
    )
)
"""2**r = 1 + r * p(r) for |r| up to 1/2."""

LOG: Final = tuple(
    float.fromhex(text)
    for text in (
        "0x1.5555555555555p-1",
        "0x1.9999999999a3ap-2",
        "0x1.249249247670ap-2",
        "0x1.c71c7201fc0e6p-3",
        "0x1.745cf8c09a9d4p-3",
        "0x1.3b1c43c68eb6dp-3",
        "0x1.0fbd140544b63p-3",
        "0x1.0c135adcf3011p-3",
    )
)
"""log((1 + s) / (1 - s)) = 2 * s + s * w * p(w), w = s**2."""

ATAN: Final = tuple(
    float.fromhex(text)
    for text in (
        "-0x1.5555555555555p-2",
        "0x1.9999999999997p-3",
        "-0x1.24924924920acp-3",
        "0x1.c71c71c6dda8cp-4",
        "-0x1.745d17355fb40p-4",
        "0x1.3b13aea92b800p-4",
        "-0x1.1110ced7ae904p-4",
        "0x1.e1d8e7e3671b7p-5",
        "-0x1.aebd0d9afbb7ap-5",
        "0x1.829c6fefc6aacp-5",
        "-0x1.503a72dea3f41p-5",
        "0x1.f5e70778c399ap-6",
        "-0x1.c80183a6f4d8cp-7",
    )
)
"""atan(t) = t + t * w * p(w), w = t**2, for |t| up to tan(pi / 8)."""

SIN: Final = tuple(
    float.fromhex(text)
    for text in (
        "-0x1.5555555555555p-3",
        "0x1.1111111111110p-7",
        "-0x1.a01a01a019936p-13",
        "0x1.71de3a54605eep-19",
        "-0x1.ae64541266378p-26",
        "0x1.61217ec01749dp-33",
        "-0x1.ab17a79237a19p-41",
    )
)
"""sin(r) = r + r * w * p(w), w = r**2, for |r| up to pi / 4."""

COS: Final = tuple(
    float.fromhex(text)
    for text in (
        "0x1.5555555555555p-5",
        "-0x1.6c16c16c16c16p-10",
        "0x1.a01a01a019d0ap-16",
        "-0x1.27e4fb7712bdfp-22",
        "0x1.1eed8deb6d561p-29",
        "-0x1.9394b9c9c20a4p-37",
        "0x1.ab783376962cfp-45",
    )
)
"""cos(r) = 1 - w / 2 + w**2 * p(w), w = r**2."""

ERF_NEAR: Final = tuple(
    float.fromhex(text)
    for text in (
        "0x1.20dd750429b6dp+0",
        "-0x1.812746b0379e7p-2",
        "0x1.ce2f21a042be2p-4",
        "-0x1.b82ce31288b47p-6",
        "0x1.565bcd0e6a2eep-8",
        "-0x1.c02db40035f1ep-11",
        "0x1.f9a326f7ac5b1p-14",
        "-0x1.f4d25bf9af03ap-17",
        "0x1.b9e6c38e5cf3dp-20",
        "-0x1.5f73c3bf14b91p-23",
        "0x1.fcbb312b48443p-27",
        "-0x1.517ce02f1265fp-30",
        "0x1.9a0fcb5e22c5bp-34",
        "-0x1.b40e7abf9f000p-38",
        "0x1.3c01fd3a74542p-42",
    )
)
"""erf(x) = x * p(x**2) for |x| up to 1."""

ERF_FAR: Final = tuple(
    float.fromhex(text)
    for text in (
        "0x1.ffcaa8f4c9bebp-1",
        "0x1.1d83170fbf6f3p-9",
        "-0x1.64e3dcd3b0620p-8",
        "0x1.119da0c46ce23p-7",
        "-0x1.1a89b97cdb0d5p-7",
        "0x1.90e81283f56f5p-8",
        "-0x1.6ecdbf6a9677cp-9",
        "0x1.1c610bcd7ecc1p-11",
        "0x1.11551e78c9c81p-12",
        "-0x1.067178de9c402p-12",
        "0x1.4a8440e9ed06fp-14",
        "0x1.58bd2569e9f6cp-18",
        "-0x1.d871dc20d4741p-17",
        "0x1.3acd8fb36a9d7p-18",
        "0x1.854687f43d052p-23",
        "-0x1.5840efb9dc8cdp-21",
        "0x1.811f0ddb3536ap-23",
        "0x1.3518acbbd607fp-26",
        "-0x1.9965beb7ec98ap-26",
        "0x1.336c894dd3e3ep-28",
        "0x1.44ae39a0852ecp-30",
        "-0x1.77187bd73091cp-31",
        "0x1.4846e0bb4a303p-35",
        "0x1.a1937ac4c63b2p-35",
        "-0x1.415d57ca8e525p-37",
        "-0x1.c92148f89e1a0p-40",
        "0x1.0159fb6effd55p-41",
        "0x1.acdeb4a1f8fcbp-47",
    )
)
"""erf(x) = p(x - 2.5) for x from 1 to 4."""

LN2: Final = tuple(
    float.fromhex(text)
    for text in (
        "0x1.62e42fefa2000p-1",
        "0x1.9ef35793c7673p-41",
    )
)
"""log(2): 40 bits, and the rest."""

LOG2E: Final = tuple(float.fromhex(text) for text in ("0x1.71547652b82fep+0",))
"""1 / log(2)."""

LOG2E_PARTS: Final = tuple(
    float.fromhex(text)
    for text in (
        "0x1.7154764000000p+0",
        "0x1.2b82fe1777d10p-28",
    )
)
"""1 / log(2): 28 bits, and the rest."""

LOG10E_PARTS: Final = tuple(
    float.fromhex(text)
    for text in (
        "0x1.bcb7b14000000p-2",
        "0x1.26e50e32a6ab7p-30",
    )
)
"""1 / log(10): 28 bits, and the rest."""

LOG10_2: Final = tuple(
    float.fromhex(text)
    for text in (
        "0x1.34413509f6000p-2",
        "0x1.9fef311f12b36p-42",
    )
)
"""log10(2): 40 bits, and the rest."""

TWO_OVER_PI: Final = tuple(float.fromhex(text) for text in ("0x1.45f306dc9c883p-1",))
"""2 / pi."""

HALF_PI: Final = tuple(
    float.fromhex(text)
    for text in (
        "0x1.921fb54400000p+0",
        "0x1.0b4611a600000p-34",
        "0x1.3198a2e037073p-69",
    )
)
"""pi / 2: 33 bits, 33 bits, and the rest."""

HALF_PI_PARTS: Final = tuple(
    float.fromhex(text)
    for text in (
        "0x1.921fb54442d18p+0",
        "0x1.1a62633145c07p-54",
    )
)
"""pi / 2: 53 bits, and the rest."""

QUARTER_PI_PARTS: Final = tuple(
    float.fromhex(text)
    for text in (
        "0x1.921fb54442d18p-1",
        "0x1.1a62633145c07p-55",
    )
)
"""pi / 4: 53 bits, and the rest."""
