"""Convolution in NCHW8c and OIHW8i8o: a strip of one row of the result in registers, for several blocks of filters at once."""

from __future__ import annotations

from layoutproof.lowering.reference.programs import check_extents, check_registers, check_vectors, conv2d_program
from layoutproof.lowering.reference.steps import drop_guards, keep_in_registers, make_vectors, run_tiles_in_threads
from layoutproof.lowering.schedule import Schedule

SCRATCH = 2
"""How many vector registers hold a pixel and a product."""


def conv2d(
    n: int,
    c: int,
    h: int,
    w: int,
    k: int,
    r: int,
    s: int,
    *,
    halo: int = 0,
    block: int = 8,
    registers: int = 16,
    strip: int | None = None,
    fused: bool = False,
) -> Schedule:
    """A convolution of `n` images of `c` channels, `h` by `w`, with `k` filters, `r` by `s`, float32, `halo` zeros around the images.

    With blocks of 8 channels the images are NCHW8c, the filters OIHW8i8o, the result NCHW8c; padded channels are zero, those of the
    result anything. A strip of neighbours in a row is computed at a time, for up to four blocks of filters; `registers` (16 or 32)
    chooses it where it is not given, and where it does not divide a row of the result, rows are stored longer. `fused` is as in
    `matmul`; where channels are padded, its proof takes the licence `nsz`, since a product that rounds to -0.0 is lost. Raises
    LayoutproofError for extents below 1.
    """
    check_extents("conv2d", n=n, c=c, h=h, w=w, k=k, r=r, s=s, block=block)
    check_extents("conv2d", **{"one more than the halo": halo + 1 if type(halo) is int else halo})
    check_extents("conv2d", **{"the result's height": h + 2 * halo - r + 1, "the result's width": w + 2 * halo - s + 1})
    check_vectors("conv2d", block, block)
    width = w + 2 * halo - s + 1
    if strip is not None:
        check_extents("conv2d", strip=strip)
    together, taken = best_tile(-(-k // block), width, check_registers("conv2d", registers), strip)
    across = -(-width // taken) * taken
    schedule = Schedule(conv2d_program(n, c, h, w, k, r, s, halo=halo, fused=fused))
    _block_channels(schedule, halo, block, together)
    if across > width:
        _lengthen_rows(schedule, "P" if halo else "X", across + s - 1, "T.undef()" if halo else 0.0)
        _lengthen_rows(schedule, "Y", across, "T.undef()")
    schedule.split("conv2d", "x", [None, taken])
    schedule.reorder("conv2d", ["n", "k_0", "y", "x_0", "c_0", "c_1", "r", "s", "x_1", "k_1", "k_2"])
    drop_guards(schedule, "conv2d")
    schedule.cache_write("conv2d", "Y", "local")
    drop_guards(schedule, "Y_local")
    schedule.split("Y_local", "ax1", [None, together])
    row = "ax3" if across == width else "ax4"
    schedule.split("Y_local", row, [None, taken])
    rest = ["ax1_1", f"{row}_1", "ax4" if across == width else "ax5"]
    schedule.reorder("Y_local", ["ax0", "ax1_0", "ax2", f"{row}_0", *rest])
    keep_in_registers(schedule, "conv2d", "Y", tile=["n", "k_0", "y", "x_0"])
    if halo:
        run_tiles_in_threads(schedule, ["hn", "hc_0", "hy"])
    run_tiles_in_threads(schedule, ["n", "k_0", "y", "x_0"])
    make_vectors(schedule, lanes=("hc_1", "k_2", rest[-1]), unrolled=("k_1", "x_1", *rest[:-1]))
    return schedule


def _block_channels(schedule: Schedule, halo: int, block: int, together: int) -> None:
    """Store everything by channels in blocks, and let the loops run over whole blocks."""
    by_channels = f"lambda n, c, y, x: [n, c//{block}, y, x, c%{block}]"
    if halo:
        schedule.transform_layout("halo", "X", by_channels, pad_value=0.0)
        schedule.transform_layout("conv2d", "P", by_channels, pad_value=0.0)
        schedule.split("halo", "hc", [None, block])
        schedule.reorder("halo", ["hn", "hc_0", "hy", "hx", "hc_1"])
        drop_guards(schedule, "halo")
        # What pads the channels of P stored zeros, which are there now.
        schedule.remove_no_op()
    else:
        schedule.transform_layout("conv2d", "X", by_channels, pad_value=0.0)
    schedule.transform_layout("conv2d", "Y", by_channels, pad_value="T.undef()")
    schedule.transform_layout("conv2d", "F", f"lambda k, c, r, s: [k//{block}, c//{block}, r, s, c%{block}, k%{block}]", pad_value=0.0)
    schedule.split("conv2d", "k", [None, together, block])
    schedule.split("conv2d", "c", [None, block])
    drop_guards(schedule, "conv2d")


def _lengthen_rows(schedule: Schedule, buffer: str, length: int, pad: object) -> None:
    """Store each row of images as one of `length` elements."""
    schedule.transform_layout("conv2d", buffer, f"lambda n, d, y, x, c: [n, d, y, x//{length}, x%{length}, c]", pad_value=pad)


def best_tile(blocks: int, width: int, registers: int, strip: int | None = None) -> tuple[int, int]:
    """How many blocks of filters to take at a time, a divisor of their number, and how many neighbours in a row of the result.

    The results fit in registers, beside a filter of each block. Of what fits, the tile with the fewest loads and operations for a row;
    the longest strip of those. With a `strip` given, the blocks to go with it.
    """
    fitting = [
        (together, length)
        for together in range(1, 5)
        for length in ([strip] if strip is not None else range(1, registers))
        if blocks % together == 0 and together * (length + 1) + SCRATCH <= registers
    ]

    def cost(tile: tuple[int, int]) -> tuple[float, int]:
        together, length = tile
        computed = -(-width // length) * length
        return computed * (1 + (together + length) / (together * length)), -length

    return min(fitting, key=cost, default=(1, strip if strip is not None else 1))
