"""Products by tensor instructions of CUDA as texts, for tests."""

from __future__ import annotations

HEAD = "from tvm.script import tir as T\n\n@T.prim_func\ndef "
PRODUCT = """plain(A: T.Buffer((32, 32), "{a}"), B: T.Buffer((32, 32), "{a}"), C: T.Buffer((32, 32), "{c}")):
    T.func_attr({"tir.noalias": True})
    for i, j in T.grid(32, 32):
        C[i, j] = T.{c}(0)
        for k in range(32):
            C[i, j] = C[i, j] + T.Cast("{c}", A[i, k]) * T.Cast("{c}", B[{b}])
"""
NUMBER = "{v}.elem_offset // {v}.strides[0] // {n} * ({v}.strides[0] // {n}) + {v}.elem_offset % {v}.strides[0] // {n}"


def number(view: str, size: int) -> str:
    """The number of a fragment, as TVM writes it."""
    return NUMBER.replace("{v}", view).replace("{n}", str(size))


def view(name: str, region: str, size: int, dtype: str, scope: str) -> str:
    """A tile of a buffer."""
    return (
        f'{name} = T.match_buffer({region}, ({size}, {size}), "{dtype}", strides=("{name}_s0", "{name}_s1"), '
        f'scope="{scope}", offset_factor={size})'
    )


def pointer(name: str, size: int, dtype: str, mode: int) -> str:
    """Where a tile in memory begins."""
    kind = f'T.type_annotation("{dtype}")'
    return f"T.tvm_access_ptr({kind}, {name}.data, {name}.elem_offset, {name}.strides[0] * {size}, {mode})"


def tile(row: str, column: str, size: int) -> str:
    """A region."""
    return f"[{row} * {size}:{row} * {size} + {size}, {column} * {size}:{column} * {size} + {size}]"


def block(*lines: str) -> list[str]:
    """A block of a warp."""
    return ['with T.block(""):', *("    " + line for line in lines)]


def wmma(a: str = "int8", c: str = "int32", layout: str = "row_major") -> str:
    """Each of four warps makes a tile of the product, by way of shared memory."""
    n = 16
    right = ("ko", "ty % 2") if layout == "row_major" else ("ty % 2", "ko")
    fill = block(
        view("F", "acc" + tile("(ty // 2)", "(ty % 2)", n), n, c, "wmma.accumulator"),
        f"T.tvm_fill_fragment(F.data, 16, 16, 16, {number('F', n)}, T.float32(0))",
    )
    loads = [
        block(
            view("M", f"{memory}{tile(f'({at[0]})', f'({at[1]})', n)}", n, a, "shared"),
            view("F", f"{fragment}{tile(f'({at[0]})', f'({at[1]})', n)}", n, a, f"wmma.matrix_{which}"),
            f"T.tvm_load_matrix_sync(F.data, 16, 16, 16, {number('F', n)}, "
            f'{pointer("M", n, a, 1)}, M.strides[0], "{form}")',
        )
        for memory, fragment, which, at, form in (
            ("P", "fa", "a", ("ty // 2", "ko"), "row_major"),
            ("Q", "fb", "b", right, layout),
        )
    ]
    product = block(
        view("X", "fa" + tile("(ty // 2)", "ko", n), n, a, "wmma.matrix_a"),
        view("Y", "fb" + tile(f"({right[0]})", f"({right[1]})", n), n, a, "wmma.matrix_b"),
        view("Z", "acc" + tile("(ty // 2)", "(ty % 2)", n), n, c, "wmma.accumulator"),
        f"T.tvm_mma_sync(Z.data, {number('Z', n)}, X.data, {number('X', n)}, "
        f"Y.data, {number('Y', n)}, Z.data, {number('Z', n)})",
    )
    store = block(
        view("F", "acc" + tile("(ty // 2)", "(ty % 2)", n), n, c, "wmma.accumulator"),
        view("M", "C" + tile("(ty // 2)", "(ty % 2)", n), n, c, "global"),
        f"T.tvm_store_matrix_sync(F.data, 16, 16, 16, {number('F', n)}, "
        f'{pointer("M", n, c, 2)}, M.strides[0], "row_major")',
    )
    copies = [
        "for i in range(8):",
        "    for tx in T.thread_binding(32, thread='threadIdx.x'):",
        "        P[ty * 8 + i, tx] = A[ty * 8 + i, tx]",
        "        Q[ty * 8 + i, tx] = B[ty * 8 + i, tx]",
    ]
    inner = ["for ko in range(2):", *("    " + line for part in (*loads, product) for line in part)]
    body = [*copies, *fill, *inner, *store]
    scopes = {"P": (a, "shared"), "Q": (a, "shared"), "fa": (a, "wmma.matrix_a"), "fb": (a, "wmma.matrix_b")}
    scopes["acc"] = (c, "wmma.accumulator")
    return "\n".join(
        [
            f'tensor(A: T.Buffer((32, 32), "{a}"), B: T.Buffer((32, 32), "{a}"), C: T.Buffer((32, 32), "{c}")):',
            '    T.func_attr({"tir.noalias": True})',
            *(f'    {name} = T.alloc_buffer((32, 32), "{d}", scope="{s}")' for name, (d, s) in scopes.items()),
            "    for ty in T.thread_binding(4, thread='threadIdx.y'):",
            *("        " + line for line in body),
            "",
        ]
    )


def product(a: str = "int8", c: str = "int32", b: str = "k, j") -> str:
    """The product in loops."""
    return PRODUCT.replace("{a}", a).replace("{c}", c).replace("{b}", b)
