"""Normalisations: batch, instance, group, layer and root mean square, softmax and its logarithm, response
normalisation.
"""

from __future__ import annotations

from functools import cache
from math import prod

from layoutproof.graph.model.graph import Shape
from layoutproof.graph.operators.elementwise import broadcast, repeated
from layoutproof.graph.operators.operator_text import (
    Nest,
    access,
    axis_of,
    cached_by_number,
    function,
    lowest,
    number,
    require,
    variables,
)
from layoutproof.ir.primfunc import PrimFunc


@cached_by_number
def batch_norm(shape: Shape, epsilon: float = 1e-5, dtype: str = "float32") -> PrimFunc:
    """`Y = (X - M) / sqrt(V + epsilon) * G + B`, the last four with one element for each channel, which is axis 1.

    Operands: X, gamma, beta, mean, variance. Raises LayoutproofError for an array without channels.
    """
    require(len(shape) >= 2, "batch_norm", f"an array of {len(shape)} axes has no channels")
    axes = variables(shape)
    x = access("X", list(axes))
    value = f"({x} - M[v1]) / T.sqrt(V[v1] + {number(epsilon, dtype)}) * G[v1] + B[v1]"
    channels = (shape[1],)
    arrays = {"X": shape, "G": channels, "B": channels, "M": channels, "V": channels, "Y": shape}
    return function("batch_norm", arrays, Nest("batch_norm", axes, f"{access('Y', list(axes))} = {value}"), dtype=dtype)


@cached_by_number
def instance_norm(shape: Shape, epsilon: float = 1e-5, dtype: str = "float32") -> PrimFunc:
    """`Y = (X - m) / sqrt(v + epsilon) * G + B`, `m` and `v` the mean and the variance of each channel of each image.

    Operands: X, scale, bias. Raises LayoutproofError for an array without channels or places.
    """
    require(len(shape) >= 3, "instance_norm", f"an array of {len(shape)} axes has no channels of several elements")
    axes = variables(shape)
    kept = {name: axes[name] for name in ("v0", "v1")}
    places = {name: extent for name, extent in axes.items() if name not in kept}
    x, zero, count = access("X", list(axes)), f"T.{dtype}(0)", number(prod(places.values()), dtype)
    apart = f"({x} - M[v0, v1])"
    spread = f"T.sqrt(Q[v0, v1] / {count} + {number(epsilon, dtype)})"
    nests = (
        Nest("total", kept, f"S[v0, v1] = S[v0, v1] + {x}", places, f"S[v0, v1] = {zero}"),
        Nest("mean", kept, f"M[v0, v1] = S[v0, v1] / {count}"),
        Nest("squares", kept, f"Q[v0, v1] = Q[v0, v1] + {apart} * {apart}", places, f"Q[v0, v1] = {zero}"),
        Nest("instance_norm", axes, f"{access('Y', list(axes))} = {apart} / {spread} * G[v1] + B[v1]"),
    )
    channels = (shape[1],)
    arrays = {"X": shape, "G": channels, "B": channels, "Y": shape}
    return function("instance_norm", arrays, *nests, dtype=dtype, temporaries=dict.fromkeys("SMQ", shape[:2]))


@cache
def group_mean(shape: Shape, groups: int, dtype: str = "float32") -> PrimFunc:
    """Each channel's element becomes the mean of its group's. Raises LayoutproofError for incomplete groups."""
    fits = len(shape) >= 2 and groups >= 1 and shape[1] % groups == 0 and all(extent == 1 for extent in shape[2:])
    require(fits, "group_mean", f"an array of {list(shape)} has no {groups} groups of channels with one element")
    size, rest = shape[1] // groups, ["0"] * (len(shape) - 2)
    channel = access("X", ["n", "g" if size == 1 else f"g * {size} + i", *rest])
    total = Nest(
        "total", {"n": shape[0], "g": groups}, f"S[n, g] = S[n, g] + {channel}", {"i": size}, f"S[n, g] = T.{dtype}(0)"
    )
    group = "c" if size == 1 else f"c // {size}"
    mean = Nest(
        "mean",
        {"n": shape[0], "c": shape[1]},
        f"{access('Y', ['n', 'c', *rest])} = S[n, {group}] / {number(size, dtype)}",
    )
    return function(
        "group_mean", {"X": shape, "Y": shape}, total, mean, dtype=dtype, temporaries={"S": (shape[0], groups)}
    )


@cache
def softmax(shape: Shape, axis: int = -1, dtype: str = "float32") -> PrimFunc:
    """`exp(X - m) / sum(exp(X - m))` along an axis with maximum `m`. Raises LayoutproofError for no such axis."""
    along = axis_of("softmax", axis, len(shape))
    axes = variables(shape)
    whole, rest = list(axes), [name for k, name in enumerate(axes) if k != along]
    kept = {name: axes[name] for name in rest}
    reduced = {f"v{along}": shape[along]}
    outer = tuple(kept.values())
    x, e, y = (access(array, whole) for array in ("X", "E", "Y"))
    largest, total = access("L", rest), access("S", rest)
    nests = (
        Nest("largest", kept, f"{largest} = T.max({largest}, {x})", reduced, f'{largest} = T.min_value("{dtype}")'),
        Nest("exponential", axes, f"{e} = T.exp({x} - {largest})"),
        Nest("total", kept, f"{total} = {total} + {e}", reduced, f"{total} = T.{dtype}(0)"),
        Nest("share", axes, f"{y} = {e} / {total}"),
    )
    return function(
        "softmax", {"X": shape, "Y": shape}, *nests, dtype=dtype, temporaries={"L": outer, "E": shape, "S": outer}
    )


@cached_by_number
def response_norm(shape: Shape, size: int, alpha: float, beta: float, bias: float, dtype: str = "float32") -> PrimFunc:
    """`X / (bias + alpha / size * q)**beta`, `q` the sum of squares over `size` channels around; those that are not
    there do not count.

    Raises LayoutproofError for an array without channels.
    """
    require(len(shape) >= 2 and size >= 1, "response_norm", f"an array of {len(shape)} axes has no {size} channels")
    axes = variables(shape)
    names = list(axes)
    place = f"v1 + d - {(size - 1) // 2}"
    x = access("X", [names[0], place, *names[2:]])
    squares = access("Q", names)
    inside = f"T.if_then_else(0 <= {place} and {place} < {shape[1]}, {x} * {x}, T.{dtype}(0))"
    total = Nest("squares", axes, f"{squares} = {squares} + {inside}", {"d": size}, f"{squares} = T.{dtype}(0)")
    scale = f"T.pow({number(bias, dtype)} + {number(alpha / size, dtype)} * {squares}, {number(beta, dtype)})"
    store = f"{access('Y', names)} = {access('X', names)} / {scale}"
    return function(
        "response_norm",
        {"X": shape, "Y": shape},
        total,
        Nest("scale", axes, store),
        dtype=dtype,
        temporaries={"Q": shape},
    )


@cached_by_number
def layer_norm(
    shape: Shape, axis: int, scale: Shape, bias: Shape | None, epsilon: float, dtype: str = "float32"
) -> PrimFunc:
    """`Y = (X - m) / sqrt(v + epsilon) * W + B`, `m` and `v` the mean and the variance over all axes from `axis` on.

    Raises LayoutproofError for an axis that is not there, and for a scale or a bias that is not repeated to `shape`.
    """
    spatial, reduced, place = _split("layer_norm", shape, axis)
    for given in (scale, bias if bias is not None else ()):
        require(
            broadcast("layer_norm", shape, given) == shape,
            "layer_norm",
            f"{list(given)} is not repeated to {list(shape)}",
        )
    axes = variables(shape)
    x, y = access("X", list(axes)), access("Y", list(axes))
    total, mean, squares = (access(array, place) for array in ("S", "M", "Q"))
    count = number(prod(reduced.values()), dtype)
    value = f"({x} - {mean}) / T.sqrt({squares} / {count} + {number(epsilon, dtype)}) * {repeated('W', scale, shape)}"
    nests = (
        Nest("total", spatial, f"{total} = {total} + {x}", reduced, f"{total} = {number(0, dtype)}"),
        Nest("mean", spatial, f"{mean} = {total} / {count}"),
        Nest(
            "squares",
            spatial,
            f"{squares} = {squares} + ({x} - {mean}) * ({x} - {mean})",
            reduced,
            f"{squares} = {number(0, dtype)}",
        ),
        Nest("layer_norm", axes, f"{y} = {value}" if bias is None else f"{y} = {value} + {repeated('B', bias, shape)}"),
    )
    arrays = {"X": shape, "W": scale, **({"B": bias} if bias is not None else {}), "Y": shape}
    outer = tuple(spatial.values())
    return function("layer_norm", arrays, *nests, dtype=dtype, temporaries={"S": outer, "M": outer, "Q": outer})


@cached_by_number
def rms_norm(shape: Shape, axis: int, scale: Shape, epsilon: float, dtype: str = "float32") -> PrimFunc:
    """`Y = X / sqrt(q + epsilon) * W`, `q` the mean square over all axes from `axis`. Raises as `layer_norm` does."""
    spatial, reduced, place = _split("rms_norm", shape, axis)
    require(broadcast("rms_norm", shape, scale) == shape, "rms_norm", f"{list(scale)} is not repeated to {list(shape)}")
    axes = variables(shape)
    x, squares = access("X", list(axes)), access("Q", place)
    root = f"T.sqrt({squares} / {number(prod(reduced.values()), dtype)} + {number(epsilon, dtype)})"
    nests = (
        Nest("squares", spatial, f"{squares} = {squares} + {x} * {x}", reduced, f"{squares} = {number(0, dtype)}"),
        Nest("rms_norm", axes, f"{access('Y', list(axes))} = {x} / {root} * {repeated('W', scale, shape)}"),
    )
    arrays = {"X": shape, "W": scale, "Y": shape}
    return function("rms_norm", arrays, *nests, dtype=dtype, temporaries={"Q": tuple(spatial.values())})


@cache
def log_softmax(shape: Shape, axis: int = -1, dtype: str = "float32") -> PrimFunc:
    """`X - m - log(sum(exp(X - m)))` along an axis with maximum `m`. Raises LayoutproofError for no such axis."""
    along = axis_of("log_softmax", axis, len(shape))
    axes = variables(shape)
    place = [name for k, name in enumerate(axes) if k != along]
    spatial, reduced = {name: axes[name] for name in place}, {f"v{along}": shape[along]}
    x, top, total = access("X", list(axes)), access("L", place), access("S", place)
    nests = (
        Nest("largest", spatial, f"{top} = T.max({top}, {x})", reduced, f"{top} = {lowest(dtype)}"),
        Nest("total", spatial, f"{total} = {total} + T.exp({x} - {top})", reduced, f"{total} = {number(0, dtype)}"),
        Nest("log_softmax", axes, f"{access('Y', list(axes))} = {x} - {top} - T.log({total})"),
    )
    outer = tuple(spatial.values())
    return function("log_softmax", {"X": shape, "Y": shape}, *nests, dtype=dtype, temporaries={"L": outer, "S": outer})


@cache
def lp_norm(shape: Shape, axis: int, order: int, dtype: str = "float32") -> PrimFunc:
    """`X / n` along an axis, `n` the sum of absolute values (order 1) or the root of the sum of squares (2) there; 0
    where `n` is 0.

    Raises LayoutproofError for an axis that is not there, and for another order.
    """
    require(order in (1, 2), "lp_norm", f"there is no norm of order {order}; there are 1 and 2")
    along = axis_of("lp_norm", axis, len(shape))
    axes = variables(shape)
    place = [name for k, name in enumerate(axes) if k != along]
    spatial, reduced = {name: axes[name] for name in place}, {f"v{along}": shape[along]}
    x, total, zero = access("X", list(axes)), access("S", place), number(0, dtype)
    norm = total if order == 1 else f"T.sqrt({total})"
    nests = (
        Nest(
            "total",
            spatial,
            f"{total} = {total} + {f'T.abs({x})' if order == 1 else f'{x} * {x}'}",
            reduced,
            f"{total} = {zero}",
        ),
        Nest("lp_norm", axes, f"{access('Y', list(axes))} = T.if_then_else({total} == {zero}, {zero}, {x} / {norm})"),
    )
    return function(
        "lp_norm", {"X": shape, "Y": shape}, *nests, dtype=dtype, temporaries={"S": tuple(spatial.values())}
    )


def _split(operator: str, shape: Shape, axis: int) -> tuple[dict[str, int], dict[str, int], list[str]]:
    """The axes before one, those from it on, and the place that the first are."""
    first = axis_of(operator, axis, len(shape))
    axes = variables(shape)
    spatial = {name: axes[name] for name in list(axes)[:first]}
    return spatial, {name: axes[name] for name in list(axes)[first:]}, list(spatial)
