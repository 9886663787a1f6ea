"""The layouts that this team's kernels use."""

from layoutproof import IndexMap


def nchwc(lanes: int) -> IndexMap:
    """An image with `lanes` channels side by side."""
    return IndexMap.from_func(lambda n, h, w, c: [n, c // lanes, h, w, c % lanes])


OIHW4I4O = IndexMap.from_func(lambda o, i, h, w: [o // 4, i // 4, h, w, i % 4, o % 4])
QUARTERS = IndexMap.from_func(lambda i, j: [i, j // 4, j % 4])
WAVEFRONT = IndexMap.from_func(lambda i, j: [(i + j) * (i + j + 1) // 2 + j])
