"""Formulas for tensors in textures as projects publish them, in our words: which of them tell elements apart, and fill
the image.

`index_map` takes either the logical index, and gives layer, row, column and channel, or, where `of_image`, the column
`i`, the row `j` and the channel `k` of an image, and gives the logical index that the project says is there. Such a
formula is right where it is a bijection onto the tensor. Shapes have numbers that are not multiples of each other, and
channels in fours where a project pads them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Formula:
    """A formula by its project and name there; `shape` is that of its inputs, `box` that of what it gives.

    `sizes` states the extents as names, where the claim is about all shapes.
    """

    project: str
    name: str
    index_map: str
    shape: tuple[int, ...]
    box: tuple[int, ...]
    sizes: str | None = None
    of_image: bool = False

    @property
    def label(self) -> str:
        """What tests call it."""
        return f"{self.project}, {self.name}{', from the image' if self.of_image else ''}"


N, C, H, W = 2, 8, 5, 3

RIGHT: tuple[Formula, ...] = (
    Formula(
        "MACE",
        "channel-major",
        "lambda i, j, k: [j // 5, j % 5, i % 3, i // 3 * 4 + k]",
        (6, 10, 4),
        (N, H, W, C),
        of_image=True,
    ),
    Formula(
        "MACE",
        "convolution filter",
        "lambda i, j, k: [j // 6 * 4 + k, i, j % 6 // 3, j % 6 % 3]",
        (5, 12, 4),
        (8, 5, 2, 3),
        of_image=True,
    ),
    Formula(
        "MACE",
        "depthwise filter, multiplier 1",
        "lambda i, j, k: [j * 4 + k, i // 3, i % 3]",
        (6, 2, 4),
        (8, 2, 3),
        of_image=True,
    ),
    Formula("MACE", "argument", "lambda i, k: [i * 4 + k]", (5, 4), (20,), of_image=True),
    Formula(
        "MNN, TNN",
        "image of NHWC",
        "lambda n, h, w, c: [n * H + h, c // 4 * W + w, c % 4]",
        (N, H, W, C),
        (10, 6, 4),
        "N, H, W, C",
    ),
    Formula(
        "MNN, TNN",
        "convolution filter",
        "lambda o, i, h, w: [(o // 4 * H + h) * W + w, i, o % 4]",
        (8, 5, 2, 3),
        (12, 5, 4),
        "O, I, H, W",
    ),
    Formula(
        "MNN, TNN",
        "depthwise filter, multiplier 1",
        "lambda c, h, w: [c // 4, h * W + w, c % 4]",
        (8, 2, 3),
        (2, 6, 4),
        "C, H, W",
    ),
    Formula(
        "TNN",
        "image of 6 axes",
        "lambda n, c, d, e, f, g: [(n * D + d) * E + e, (c // 4 * F + f) * G + g, c % 4]",
        (2, 8, 2, 3, 2, 5),
        (12, 20, 4),
        "N, C, D, E, F, G",
    ),
    Formula(
        "Paddle-Lite",
        "default",
        "lambda n, c, h, w: [n * H + h, c // 4 * W + w, c % 4]",
        (N, C, H, W),
        (10, 6, 4),
        "N, C, H, W",
    ),
    Formula("Paddle-Lite", "folder", "lambda h, w: [h, w // 4, w % 4]", (5, 12), (5, 3, 4), "H, W"),
    Formula(
        "Paddle-Lite",
        "filter by N and W",
        "lambda n, c, h, w: [c * H + h, n // 4 * W + w, n % 4]",
        (8, 3, 5, 2),
        (15, 4, 4),
        "N, C, H, W",
    ),
    Formula(
        "TFLite",
        "2d texture, x of W and B",
        "lambda b, h, w, c: [h * ((C + 3) // 4) + c // 4, w * B + b, c % 4]",
        (2, 5, 3, 8),
        (10, 6, 4),
        "B, H, W, C",
    ),
    Formula(
        "TFLite",
        "2d texture, x of C",
        "lambda b, h, w, c: [(h * W + w) * B + b, c // 4, c % 4]",
        (2, 5, 3, 8),
        (30, 2, 4),
        "B, H, W, C",
    ),
    Formula(
        "TFLite",
        "texture array",
        "lambda b, h, w, c: [c // 4, h, w * B + b, c % 4]",
        (2, 5, 3, 8),
        (2, 5, 6, 4),
        "B, H, W, C",
    ),
    Formula(
        "TFLite",
        "texture array with depth",
        "lambda b, h, w, d, c: [d * ((C + 3) // 4) + c // 4, h, w * B + b, c % 4]",
        (2, 5, 3, 3, 8),
        (6, 5, 6, 4),
        "B, H, W, D, C",
    ),
    Formula(
        "TFLite",
        "single texture, four channels at most",
        "lambda b, h, w, c: [h, w * B + b, c % 4]",
        (2, 5, 3, 4),
        (5, 6, 4),
        "B, H, W, 4",
    ),
    Formula(
        "TVM",
        "global.texture",
        "lambda n, c, h, w: [n, c // 4, h, AXIS_SEPARATOR, w, c % 4]",
        (N, C, H, W),
        (2, 2, 5, 3, 4),
        "N, C, H, W",
    ),
    Formula(
        "TVM",
        "global.texture-weight",
        "lambda o, i, h, w: [o // 4, AXIS_SEPARATOR, i, h, w, o % 4]",
        (8, 5, 2, 3),
        (2, 5, 2, 3, 4),
        "O, I, H, W",
    ),
    Formula(
        "TVM",
        "global.texture-nhwc",
        "lambda n, h, w, c: [n, h, AXIS_SEPARATOR, w, c // 4, c % 4]",
        (N, H, W, C),
        (2, 5, 3, 2, 4),
        "N, H, W, C",
    ),
    Formula(
        "PyTorch",
        "channels of all batches in a row",
        "lambda n, c, h, w: [(n * C + c) // 4, h, w, (n * C + c) % 4]",
        (2, 6, 5, 3),
        (3, 5, 3, 4),
        "N, C, H, W",
    ),
    Formula(
        "TensorFlow.js",
        "blocks of 2 by 2",
        "lambda r, c: [r // 2, c // 2, r % 2 * 2 + c % 2]",
        (4, 6),
        (2, 3, 4),
        "R, C",
    ),
)
# The same formulas where extents are no multiples of four: apart still, with padding.
PADDED: tuple[Formula, ...] = (
    Formula(
        "MNN, TNN", "image of NHWC", "lambda n, h, w, c: [n * 5 + h, c // 4 * 3 + w, c % 4]", (N, H, W, 6), (10, 6, 4)
    ),
    Formula("Paddle-Lite", "folder", "lambda h, w: [h, w // 4, w % 4]", (5, 10), (5, 3, 4)),
    Formula(
        "PyTorch",
        "channels of all batches in a row",
        "lambda n, c, h, w: [(n * 5 + c) // 4, h, w, (n * 5 + c) % 4]",
        (2, 5, 2, 3),
        (3, 2, 3, 4),
    ),
    Formula("TensorFlow.js", "blocks of 2 by 2", "lambda r, c: [r // 2, c // 2, r % 2 * 2 + c % 2]", (3, 5), (2, 3, 4)),
)
# Two texels are said to hold one element: the batch and the row are both taken from `j` itself.
SHARED: tuple[Formula, ...] = (
    Formula(
        "MACE",
        "height-major",
        "lambda i, j, k: [j % 2, j // 8 * 4 + k, i % 3, i // 3]",
        (15, 4, 4),
        (2, 8, 3, 5),
        of_image=True,
    ),
    Formula(
        "MACE",
        "height-major, one batch",
        "lambda i, j, k: [j % 1, j // 8 * 4 + k, i % 3, i // 3]",
        (15, 2, 4),
        (1, 8, 3, 5),
        of_image=True,
    ),
    Formula(
        "TFLite",
        "single texture, past the four channels that it has",
        "lambda b, h, w, c: [h, w * 2 + b, c % 4]",
        (2, 5, 3, 8),
        (5, 6, 4),
    ),
)
# Texels are said to hold elements that the tensor does not have: the width is not divided by four where columns are
# counted in fours; a filter with another multiplier than the 1 that the project asks for has more columns than its rows
# and columns.
OUTSIDE: tuple[Formula, ...] = (
    Formula(
        "MACE",
        "width-major",
        "lambda i, j, k: [j // 5, j % 5, i % 8 * 4 + k, i // 8]",
        (6, 10, 4),
        (2, 5, 8, 3),
        of_image=True,
    ),
    Formula(
        "MACE",
        "depthwise filter, multiplier 2",
        "lambda i, j, k: [j * 4 + k, i // 3, i % 3]",
        (12, 2, 4),
        (8, 2, 3),
        of_image=True,
    ),
)
# The same, said so that it holds.
MENDED: tuple[Formula, ...] = (
    Formula(
        "MACE",
        "height-major",
        "lambda i, j, k: [j % 2, j // 2 * 4 + k, i % 3, i // 3]",
        (15, 4, 4),
        (2, 8, 3, 5),
        of_image=True,
    ),
    Formula(
        "MACE",
        "width-major",
        "lambda i, j, k: [j // 5, j % 5, i % 2 * 4 + k, i // 2]",
        (6, 10, 4),
        (2, 5, 8, 3),
        of_image=True,
    ),
    Formula(
        "MACE",
        "depthwise filter, multiplier 2",
        "lambda i, j, k: [i // 6, j * 4 + k, i % 6 // 3, i % 3]",
        (12, 2, 4),
        (2, 8, 2, 3),
        of_image=True,
    ),
)
