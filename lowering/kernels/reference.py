"""Reference schedules of matmul, conv2d and row reductions: blocked layouts, register tiles and vectors."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import TRUE
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import For
from layoutproof.ir.visit import walk
from layoutproof.lowering import codes
from layoutproof.lowering.layout.transform_layout import ROOT
from layoutproof.lowering.loops.decompose_reduction import hoisted_inits
from layoutproof.lowering.passes.find import find_block
from layoutproof.lowering.schedule.schedule import Schedule

ACCUMULATED = {False: "{sum} + {a} * {b}", True: "T.fma({a}, {b}, {sum})"}
"""What a multiplication adds to a sum: rounded twice, or, as `fused`, once."""

SCRATCH = 2
"""How many vector registers hold a pixel and a product."""
TILES: Mapping[int, tuple[int, int]] = {16: (6, 16), 32: (8, 24)}
"""By number of vector registers, the rows and columns of the product that fit in them, in eights, beside what is
multiplied.
"""


def check_extents(operator: str, **extents: int) -> None:
    """Raise LayoutproofError for an extent that is not a whole number of at least 1."""
    for name, extent in extents.items():
        if type(extent) is not int or extent < 1:
            message = f"{operator}: {name} is a whole number of at least 1, not {extent!r}"
            raise error(codes.ARGUMENT_TYPE, message, help="the schedule is made for these extents")


def check_vectors(operator: str, elements: int, lanes: int) -> None:
    """Raise LayoutproofError unless a tile of so many elements is whole vectors of at least two lanes."""
    if type(lanes) is not int or lanes < 2 or elements % lanes:
        message = f"{operator}: {elements} elements of a tile are no whole number of vectors of {lanes} lanes"
        raise error(codes.ARGUMENT_TYPE, message, help="lanes are at least 2 and divide the tile")


def check_registers(operator: str, registers: int) -> None:
    """Raise LayoutproofError for a number of vector registers without a known tile."""
    if registers not in tuple(TILES):
        raise error(codes.ARGUMENT_TYPE, f"{operator}: there are 16 or 32 vector registers, not {registers!r}")


def row_sum_program(rows: int, columns: int) -> PrimFunc:
    """`B[i]` is the sum of `A[i, j]` over `j`, from the first to the last."""
    return _rows("row_sum", rows, columns, "T.float32(0)", "B[vi] + A[vi, vj]")


def row_max_program(rows: int, columns: int) -> PrimFunc:
    """`B[i]` is the largest `A[i, j]`, or the lowest finite number where none is larger.

    The element is the first operand, so that one that is less than anything changes nothing, not even NaN.
    """
    return _rows("row_max", rows, columns, 'T.min_value("float32")', "T.max(A[vi, vj], B[vi])")


def _rows(name: str, rows: int, columns: int, start: str, value: str) -> PrimFunc:
    return loads(
        f"""
@T.prim_func
def {name}(A: T.Buffer(({rows}, {columns}), "float32"), B: T.Buffer(({rows},), "float32")):
    T.func_attr({{"tir.noalias": True}})
    for i, j in T.grid({rows}, {columns}):
        with T.block("{name}"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = {start}
            B[vi] = {value}
""",
        f"{name}.py",
    )


def matmul_program(m: int, n: int, k: int, *, fused: bool = False) -> PrimFunc:
    """`C[i, j]` is the sum of `A[i, p] * B[p, j]` over `p`."""
    value = ACCUMULATED[fused].format(sum="C[vi, vj]", a="A[vi, vp]", b="B[vp, vj]")
    return loads(
        f"""
@T.prim_func
def matmul(A: T.Buffer(({m}, {k}), "float32"), B: T.Buffer(({k}, {n}), "float32"), C: T.Buffer(({m}, {n}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    for i, j, p in T.grid({m}, {n}, {k}):
        with T.block("matmul"):
            vi, vj, vp = T.axis.remap("SSR", [i, j, p])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = {value}
""",
        "matmul.py",
    )


@dataclass(frozen=True, slots=True)
class Convolution:
    """The extents of a convolution: `n` images of `c` channels, `h` by `w`, with `halo` zeros around them; `k` filters,
    `r` by `s`. Raises LayoutproofError for extents below 1.
    """

    n: int
    c: int
    h: int
    w: int
    k: int
    r: int
    s: int
    halo: int

    def __post_init__(self) -> None:
        check_extents("conv2d", n=self.n, c=self.c, h=self.h, w=self.w, k=self.k, r=self.r, s=self.s)
        check_extents("conv2d", **{"one more than the halo": self.halo + 1 if type(self.halo) is int else self.halo})
        check_extents("conv2d", **{"the result's height": self.height, "the result's width": self.width})

    @property
    def height(self) -> int:
        """The rows of a result."""
        return self.h + 2 * self.halo - self.r + 1

    @property
    def width(self) -> int:
        """The columns of a result."""
        return self.w + 2 * self.halo - self.s + 1


def conv2d_program(conv: Convolution, *, fused: bool = False) -> PrimFunc:
    """`Y[n, k, y, x]` is the sum of `X[n, c, y + r - halo, x + s - halo] * F[k, c, r, s]` over `c`, `r` and `s`;
    outside, `X` is zero.

    With a halo, `P` holds the images with zeros around them, and the block `halo` fills it.
    """
    n, c, h, w, halo = conv.n, conv.c, conv.h, conv.w, conv.halo
    image = "P" if halo else "X"
    value = ACCUMULATED[fused].format(
        sum="Y[vn, vk, vy, vx]", a=f"{image}[vn, vc, vy + vr, vx + vs]", b="F[vk, vc, vr, vs]"
    )
    images = f'X: T.Buffer(({n}, {c}, {h}, {w}), "float32")'
    filters = f'F: T.Buffer(({conv.k}, {c}, {conv.r}, {conv.s}), "float32")'
    inside = f"{halo} <= vy and vy < {h + halo} and {halo} <= vx and vx < {w + halo}"
    padded = f"{n}, {c}, {h + 2 * halo}, {w + 2 * halo}"
    result = f"{n}, {conv.k}, {conv.height}, {conv.width}"
    filled = f"""
    P = T.alloc_buffer(({padded}), "float32")
    for hn, hc, hy, hx in T.grid({padded}):
        with T.block("halo"):
            vn, vc, vy, vx = T.axis.remap("SSSS", [hn, hc, hy, hx])
            P[vn, vc, vy, vx] = T.if_then_else({inside}, X[vn, vc, vy - {halo}, vx - {halo}], T.float32(0))"""
    return loads(
        f"""
@T.prim_func
def conv2d({images}, {filters}, Y: T.Buffer(({result}), "float32")):
    T.func_attr({{"tir.noalias": True}}){filled if halo else ""}
    for n, k, y, x, c, r, s in T.grid({result}, {c}, {conv.r}, {conv.s}):
        with T.block("conv2d"):
            vn, vk, vy, vx, vc, vr, vs = T.axis.remap("SSSSRRR", [n, k, y, x, c, r, s])
            with T.init():
                Y[vn, vk, vy, vx] = T.float32(0)
            Y[vn, vk, vy, vx] = {value}
""",
        "conv2d.py",
    )


def drop_guards(schedule: Schedule, block: str) -> None:
    """Remove a block's guard by overcomputation, where it has one."""
    if find_block(schedule.func, block).where != TRUE:
        schedule.remove_branching_through_overcompute(block)


def keep_in_registers(schedule: Schedule, block: str, buffer: str, *, tile: Sequence[str]) -> None:
    """Accumulate a block's result in memory of each tile, and lower its blocks.

    `tile` are the loops over tiles, outermost first, which are outermost around the block and around `<buffer>_local`,
    which copies the result to the buffer. They become one nest, in whose innermost loop a tile is allocated.
    """
    for loop in tile:
        schedule.merge_adjacent_loops(block, loop)
    for transform in hoisted_inits(schedule.func):
        schedule.apply(transform)
    schedule.lower_blocks()
    schedule.simplify()
    inner = places(schedule, tile[-1:])[0]
    schedule.sink_allocation(f"{buffer}_local", ROOT, inner)
    schedule.compact_buffer(f"{buffer}_local")
    schedule.simplify()


def run_tiles_in_threads(schedule: Schedule, tile: Sequence[str]) -> None:
    """Make one parallel loop of the loops over tiles."""
    if len(tile) > 1:
        schedule.fuse(ROOT, list(tile))
    schedule.parallel(ROOT, "_".join([*tile, "fused"]) if len(tile) > 1 else tile[0])


def make_vectors(schedule: Schedule, *, lanes: Collection[str], unrolled: Collection[str]) -> None:
    """Vectorize the loops of some names, and unroll others; likewise inits that were split off."""
    for name in unrolled:
        for place in places(schedule, (name, f"{name}_init")):
            schedule.unroll(ROOT, place)
    for name in lanes:
        for place in places(schedule, (name, f"{name}_init")):
            schedule.vectorize(ROOT, place)
    schedule.vectorize_loop()
    schedule.simplify()


def places(schedule: Schedule, names: Collection[str]) -> list[int]:
    """The positions of the loops with one of these variables, among all loops in the order of the text."""
    loops = (node for node in walk(schedule.func.body) if isinstance(node, For))
    return [place for place, loop in enumerate(loops) if loop.var.name in names]


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
    """A convolution of `n` images of `c` channels, `h` by `w`, with `k` filters, `r` by `s`, float32, `halo` zeros
    around the images.

    With blocks of 8 channels the images are NCHW8c, the filters OIHW8i8o, the result NCHW8c; padded channels are zero,
    those of the result anything. A strip of neighbours in a row is computed at a time, for up to four blocks of
    filters; `registers` (16 or 32) chooses it where it is not given, and where it does not divide a row of the result,
    rows are stored longer. `fused` is as in `matmul`; where channels are padded, its proof takes the fast-math
    assumption `nsz`, since a product that rounds to -0.0 is lost. Raises LayoutproofError for extents below 1.
    """
    conv = Convolution(n, c, h, w, k, r, s, halo)
    check_extents("conv2d", block=block)
    check_vectors("conv2d", block, block)
    width = conv.width
    if strip is not None:
        check_extents("conv2d", strip=strip)
    check_registers("conv2d", registers)
    together, taken = best_tile(-(-k // block), width, registers, strip)
    across = -(-width // taken) * taken
    schedule = Schedule(conv2d_program(conv, fused=fused))
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
    """Store everything by channels in blocks, and make the loops run over whole blocks."""
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
    schedule.transform_layout(
        "conv2d", "F", f"lambda k, c, r, s: [k//{block}, c//{block}, r, s, c%{block}, k%{block}]", pad_value=0.0
    )
    schedule.split("conv2d", "k", [None, together, block])
    schedule.split("conv2d", "c", [None, block])
    drop_guards(schedule, "conv2d")


def _lengthen_rows(schedule: Schedule, buffer: str, length: int, pad: object) -> None:
    """Store each row of images as one of `length` elements."""
    schedule.transform_layout(
        "conv2d", buffer, f"lambda n, d, y, x, c: [n, d, y, x//{length}, x%{length}, c]", pad_value=pad
    )


def best_tile(blocks: int, width: int, registers: int, strip: int | None = None) -> tuple[int, int]:
    """How many blocks of filters to take at a time, a divisor of their number, and how many neighbours in a row of the
    result.

    The results fit in registers, beside a filter of each block. Of those tiles, the one with the fewest loads and
    operations for a row; of these, the longest strip. A `strip` fixes the second number.
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


def matmul(
    m: int,
    n: int,
    k: int,
    *,
    registers: int = 16,
    tile: tuple[int, int] | None = None,
    lanes: int = 8,
    fused: bool = False,
) -> Schedule:
    """The product of an `m` by `k` and a `k` by `n` matrix, float32, each element summed from the first product to the
    last.

    With a tile of `a` by `b`, which `registers` (16 or 32) chooses where it is not given: `A[i, p]` is stored as
    `[i//a, p, i%a]` and `B[p, j]` as `[j//b, p, j%b]`, their padding zero, `C[i, j]` as `[i//a, j//b, i%a, j%b]`, its
    padding anything. `fused` rounds a product and the sum it goes to once (`fma`), not twice. Raises LayoutproofError
    for extents below 1, for other numbers of registers and for a tile whose columns are no multiple of the lanes.
    """
    if tile is None:
        check_registers("matmul", registers)
    rows, columns = tile if tile is not None else TILES[registers]
    check_extents("matmul", m=m, n=n, k=k, rows=rows, columns=columns)
    check_vectors("matmul", columns, lanes)
    schedule = Schedule(matmul_program(m, n, k, fused=fused))
    schedule.transform_layout("matmul", "A", f"lambda i, p: [i//{rows}, p, i%{rows}]", pad_value=0.0)
    schedule.transform_layout("matmul", "B", f"lambda p, j: [j//{columns}, p, j%{columns}]", pad_value=0.0)
    schedule.transform_layout(
        "matmul", "C", f"lambda i, j: [i//{rows}, j//{columns}, i%{rows}, j%{columns}]", pad_value="T.undef()"
    )
    schedule.split("matmul", "i", [None, rows])
    schedule.split("matmul", "j", [None, columns // lanes, lanes])
    schedule.reorder("matmul", ["j_0", "i_0", "p", "i_1", "j_1", "j_2"])
    drop_guards(schedule, "matmul")
    schedule.cache_write("matmul", "C", "local")
    drop_guards(schedule, "C_local")
    schedule.split("C_local", "ax3", [None, lanes])
    schedule.reorder("C_local", ["ax1", "ax0", "ax2", "ax3_0", "ax3_1"])
    keep_in_registers(schedule, "matmul", "C", tile=["j_0", "i_0"])
    run_tiles_in_threads(schedule, ["j_0", "i_0"])
    make_vectors(schedule, lanes=("j_2", "ax3_1"), unrolled=("i_1", "j_1", "ax2", "ax3_0"))
    return schedule


def row_sum(
    rows: int, columns: int, *, block: int = 4, tile: int = 32, lanes: int = 8, branch: bool = False
) -> Schedule:
    """The sums of the rows of a `rows` by `columns` matrix, float32, each from its first element to its last.

    `A[i, j]` is stored as `[i//tile, j//block, j%block, i%tile]`, its padding zero, and `B[i]` as `[i//tile, i%tile]`,
    its padding anything. With `branch` the guards against padding are kept, and scalar code with them, for comparison.
    Raises LayoutproofError for extents below 1 and a tile that is no multiple of the lanes.
    """
    check_extents("row_sum", rows=rows, columns=columns, block=block, tile=tile)
    check_vectors("row_sum", tile, lanes)
    return _reduction(row_sum_program(rows, columns), 0.0, block, tile, lanes, branch)


def row_max(
    rows: int, columns: int, *, block: int = 4, tile: int = 32, lanes: int = 8, branch: bool = False
) -> Schedule:
    """The largest elements of the rows of a `rows` by `columns` matrix, float32, no less than the lowest finite number.

    Stored as for `row_sum`, but the padding of `A` is minus infinity, the only value below the start of the maximum.
    Raises LayoutproofError as `row_sum` does.
    """
    check_extents("row_max", rows=rows, columns=columns, block=block, tile=tile)
    check_vectors("row_max", tile, lanes)
    return _reduction(row_max_program(rows, columns), 'T.float32("-inf")', block, tile, lanes, branch)


def _reduction(program: PrimFunc, pad: object, block: int, tile: int, lanes: int, branch: bool) -> Schedule:
    """The schedule of a program with one block of the same name, which reduces `A[i, j]` over `j` to `B[i]`."""
    schedule, name = Schedule(program), program.name
    schedule.transform_layout(name, "A", f"lambda i, j: [i//{tile}, j//{block}, j%{block}, i%{tile}]", pad_value=pad)
    schedule.transform_layout(name, "B", f"lambda i: [i//{tile}, i%{tile}]", pad_value="T.undef()")
    schedule.split(name, "i", [None, tile // lanes, lanes])
    schedule.split(name, "j", [None, block])
    schedule.reorder(name, ["i_0", "j_0", "j_1", "i_1", "i_2"])
    if not branch:
        drop_guards(schedule, name)
    schedule.cache_write(name, "B", "local")
    if not branch:
        drop_guards(schedule, "B_local")
    schedule.split("B_local", "ax1", [None, lanes])
    keep_in_registers(schedule, name, "B", tile=["i_0"])
    run_tiles_in_threads(schedule, ["i_0"])
    if not branch:
        make_vectors(schedule, lanes=("i_2", "ax1_1"), unrolled=("j_1", "i_1", "ax1_0"))
    return schedule
