"""Random functions of `linalg` on tensors, and the transforms to try on them.

Tensors are read from memrefs and the result goes to one, so that functions can be called from memory. Every extent is
one size, a number or `?`.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from tests.random.mlir_programs import Argument, Program

_MATCH = "%op = transform.structured.match interface{LinalgOp} in %root : (!transform.any_op) -> !transform.any_op"
_NAMED = '%op = transform.structured.match ops{["NAME"]} in %root : (!transform.any_op) -> !transform.any_op'
_TO_ONE = ": (!transform.any_op) -> !transform.any_op"
_TO_TWO = ": (!transform.any_op) -> (!transform.any_op, !transform.any_op)"
_MATMUL = _NAMED.replace("NAME", "linalg.matmul")

TRANSFORMS: Mapping[str, str] = {
    "tile_2": f"{_MATCH}\n%a, %b = transform.structured.tile_using_for %op tile_sizes [2] {_TO_TWO}",
    "tile_0_3": f"{_MATMUL}\n%a, %b = transform.structured.tile_using_for %op tile_sizes [0, 3] {_TO_TWO}",
    "tile_matmul": f"{_MATMUL}\n%a, %b:3 = transform.structured.tile_using_for %op tile_sizes [2, 3, 4] "
    ": (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)",
    "forall_3": f"{_MATCH}\n%a, %b = transform.structured.tile_using_forall %op tile_sizes [3] {_TO_TWO}",
    "forall_threads": f"{_MATCH}\n%a, %b = transform.structured.tile_using_forall %op num_threads [2] {_TO_TWO}",
    "generalize": f"{_MATCH}\n%a = transform.structured.generalize %op {_TO_ONE}",
    "interchange": f"{_MATMUL}\n%g = transform.structured.generalize %op {_TO_ONE}\n"
    f"%a = transform.structured.interchange %g iterator_interchange = [1, 2, 0] {_TO_ONE}",
    "split": f"{_MATMUL}\n%a, %b = transform.structured.split %op after 2 {{dimension = 0}} : !transform.any_op",
    "pack": f"{_MATMUL}\n%a = transform.structured.pack %op packed_sizes = [2, 3, 4] "
    ': (!transform.any_op) -> (!transform.op<"linalg.generic">)',
    "pad": f"{_MATMUL}\n%t, %l:3 = transform.structured.tile_using_for %op tile_sizes [2, 3, 2] "
    ": (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)\n"
    "%a, %b, %c = transform.structured.pad %t {padding_values=[ZERO, ZERO, ZERO], padding_dimensions=[0, 1, 2]} "
    ": (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)",
    "vectorize": _NAMED.replace("NAME", "func.func")
    + f"\n%a = transform.structured.vectorize_children_and_apply_patterns %op {_TO_ONE}",
}

LOWER_PACKS = (
    '%p = transform.structured.match ops{["tensor.pack"]} in %root : (!transform.any_op) -> '
    '!transform.op<"tensor.pack">\n'
    '%a, %b, %c = transform.structured.lower_pack %p : (!transform.op<"tensor.pack">) -> '
    '(!transform.op<"tensor.pad">, !transform.op<"tensor.expand_shape">, !transform.op<"linalg.transpose">)\n'
    '%u = transform.structured.match ops{["tensor.unpack"]} in %root : (!transform.any_op) -> '
    '!transform.op<"tensor.unpack">\n'
    '%d, %e, %f, %g = transform.structured.lower_unpack %u : (!transform.op<"tensor.unpack">) -> '
    '(!transform.op<"tensor.empty">, !transform.op<"linalg.transpose">, !transform.op<"tensor.collapse_shape">, '
    '!transform.op<"tensor.extract_slice">)'
)

STRUCTURED: tuple[tuple[str, ...], ...] = (
    *((f"transform:{name}",) for name in TRANSFORMS),
    ("transform:pack", "transform:lower_packs"),
    ("transform:tile_matmul", "-canonicalize", "-cse"),
    ("transform:tile_2", "-canonicalize", "-loop-invariant-subset-hoisting"),
    ("transform:tile_2", "-scf-for-loop-peeling"),
    ("transform:pad", "-canonicalize"),
    ("-linalg-generalize-named-ops",),
    ("-linalg-fuse-elementwise-ops",),
    ("-linalg-generalize-named-ops", "-linalg-fuse-elementwise-ops"),
    ("-linalg-generalize-named-ops", "-linalg-specialize-generic-ops"),
    ("-linalg-fold-unit-extent-dims",),
    ("-linalg-block-pack-matmul=block-factors=2,3,2 allow-padding=1",),
    ("-linalg-block-pack-matmul=block-factors=2,2,2 allow-padding=1", "transform:lower_packs"),
    ("-linalg-named-op-conversion",),
    ("-linalg-inline-scalar-operands",),
    ("-linalg-detensorize",),
    ("-test-linalg-greedy-fusion",),
    ("-test-linalg-pad-fusion",),
    ("-test-linalg-transform-patterns=test-generalize-pad-tensor",),
    ("-test-linalg-transform-patterns=test-swap-subtensor-padtensor",),
    ("-test-linalg-transform-patterns=test-bubble-up-extract-slice-op-pattern",),
    ("-test-linalg-transform-patterns=test-swap-extract-slice-with-fill-pattern",),
    ("-test-linalg-transform-patterns=test-erase-unused-operands-and-results",),
    ("-test-linalg-elementwise-fusion-patterns=fuse-generic-ops",),
    ("-fold-tensor-subset-ops",),
    ("-canonicalize",),
    ("-cse", "-canonicalize"),
    ("-eliminate-empty-tensors",),
    ("-empty-tensor-to-alloc-tensor", "-one-shot-bufferize"),
    ("-one-shot-bufferize",),
    ("-one-shot-bufferize", "-convert-linalg-to-loops"),
    ("-one-shot-bufferize", "-convert-linalg-to-affine-loops", "-affine-loop-fusion"),
    ("-one-shot-bufferize", "-convert-linalg-to-affine-loops", "-affine-scalrep"),
    ("-one-shot-bufferize", "-convert-linalg-to-parallel-loops", "-scf-parallel-loop-fusion"),
    ("-one-shot-bufferize", "-convert-linalg-to-parallel-loops"),
)


def library(name: str, zero: str) -> str:
    """A module with the transform of this name."""
    body = LOWER_PACKS if name == "lower_packs" else TRANSFORMS[name].replace("ZERO", zero)
    return (
        "module attributes {transform.with_named_sequence} {\n"
        "transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {\n"
        f"{body}\ntransform.yield\n}}\n}}\n"
    )


def random_structured(random: Random, name: str) -> tuple[Program, int | None]:
    """A function of some structured operations, and its size, None where it is the call's."""
    element = random.choice(("f32", "f32", "i32"))
    size = random.choice((None, 3, 4, 5, 6, 7))
    ranks = (2, 2, 1, 2)
    arguments = [Argument(f"m{n}", element, (size,) * rank) for n, rank in enumerate(ranks)]
    program = Program(name, arguments)
    _Structures(random, program, element, size).write()
    return program, size


class _Structures:
    def __init__(self, random: Random, program: Program, element: str, size: int | None) -> None:
        self.random = random
        self.program = program
        self.element = element
        self.size = size
        self.count = 0
        self.values: list[tuple[str, int]] = []  # names and ranks

    def line(self, text: str) -> None:
        self.program.lines.append("  " + text)

    def define(self, text: str) -> str:
        self.count += 1
        name = f"%v{self.count}"
        self.line(f"{name} = {text}")
        return name

    def kind(self, rank: int) -> str:
        extent = "?" if self.size is None else str(self.size)
        return f"tensor<{'x'.join([extent] * rank)}x{self.element}>"

    def write(self) -> None:
        zero, two = ("0.0", "2.0") if self.element == "f32" else ("0", "2")
        self.zero = self.define(f"arith.constant {zero} : {self.element}")
        self.two = self.define(f"arith.constant {two} : {self.element}")
        if self.size is None:
            first = self.define("arith.constant 0 : index")
            self.extent = self.define(f"memref.dim %m0, {first} : {self.program.arguments[0].type}")
        for argument in self.program.arguments[:-1]:
            found = self.define(f"bufferization.to_tensor %{argument.name} restrict : {argument.type}")
            self.values.append((found, len(argument.shape)))
        for _ in range(self.random.randint(1, 4)):
            made = self.random.choice(
                (self.elementwise, self.elementwise, self.matmul, self.transpose, self.reduce, self.spread, self.pad,
                 self.slices)
            )  # fmt: skip
            self.values.append(made())
        name, rank = self.values[-1]
        result = name if rank == 2 else self.broadcast(name)
        out = self.program.arguments[-1]
        self.line(
            f"bufferization.materialize_in_destination {result} in writable %{out.name} "
            f": ({self.kind(2)}, {out.type}) -> ()"
        )

    def empty(self, rank: int) -> str:
        sizes = ", ".join([self.extent] * rank) if self.size is None else ""
        return self.define(f"tensor.empty({sizes}) : {self.kind(rank)}")

    def filled(self, rank: int) -> str:
        value = self.random.choice((self.zero, self.zero, self.two))
        empty = self.empty(rank)
        return self.define(
            f"linalg.fill ins({value} : {self.element}) outs({empty} : {self.kind(rank)}) -> {self.kind(rank)}"
        )

    def pick(self, rank: int) -> str:
        return self.random.choice([name for name, found in self.values if found == rank])

    def operation(self, a: str, b: str) -> str:
        names = ("addf", "subf", "mulf", "maximumf") if self.element == "f32" else ("addi", "subi", "muli", "maxsi")
        return f"arith.{self.random.choice(names)} {a}, {b} : {self.element}"

    def generic(
        self, maps: list[str], iterators: str, ins: list[tuple[str, int]], out: tuple[str, int], body: str
    ) -> str:
        named = ", ".join(name for name, _ in ins)
        kinds = ", ".join(self.kind(rank) for _, rank in ins)
        given = f"ins({named} : {kinds}) " if ins else ""
        arguments = ", ".join(f"%{'xyz'[k]}: {self.element}" for k in range(len(ins)))
        comma = ", " if ins else ""
        dims = "d0, d1" if iterators.count('"') == 4 else "d0"
        listed = ", ".join(f"affine_map<({dims}) -> ({each})>" for each in maps)
        result = self.kind(out[1])
        return self.define(
            f"linalg.generic {{indexing_maps = [{listed}], iterator_types = [{iterators}]}} {given}"
            f"outs({out[0]} : {result}) {{\n  ^bb0({arguments}{comma}%o: {self.element}):\n{body}\n  }} -> {result}"
        )

    def elementwise(self) -> tuple[str, int]:
        maps = [
            self.random.choice(("d0, d1", "d0, d1", "d1, d0")),
            self.random.choice(("d0, d1", "d1", "d0")),
            "d0, d1",
        ]
        second = self.pick(2 if "," in maps[1] else 1)
        body = [f"    %r = {self.operation('%x', '%y')}"]
        if self.random.random() < 0.2:
            body += ["    %i = linalg.index 0 : index", "    %j = arith.index_cast %i : index to i32"]
            body += [f"    %c = arith.sitofp %j : i32 to f32\n    %s = {self.operation('%r', '%c')}"] * (
                self.element == "f32"
            ) or [f"    %s = {self.operation('%r', '%j')}"]
        last = "%s" if len(body) > 1 else "%r"
        ranks = [2, 2 if "," in maps[1] else 1]
        text = "\n".join([*body, f"    linalg.yield {last} : {self.element}"])
        ins = [(self.pick(2), ranks[0]), (second, ranks[1])]
        return self.generic(maps, '"parallel", "parallel"', ins, (self.empty(2), 2), text), 2

    def matmul(self) -> tuple[str, int]:
        out = self.filled(2) if self.random.random() < 0.7 else self.pick(2)
        kind = self.kind(2)
        ins = f"ins({self.pick(2)}, {self.pick(2)} : {kind}, {kind})"
        return self.define(f"linalg.matmul {ins} outs({out} : {kind}) -> {kind}"), 2

    def transpose(self) -> tuple[str, int]:
        source, kind = self.pick(2), self.kind(2)
        empty = self.empty(2)
        self.count += 1
        name = f"%v{self.count}"
        self.line(f"{name} = linalg.transpose ins({source} : {kind}) outs({empty} : {kind}) permutation = [1, 0]")
        return name, 2

    def reduce(self) -> tuple[str, int]:
        body = f"    %r = {self.operation('%x', '%o')}\n    linalg.yield %r : {self.element}"
        maps = [self.random.choice(("d0, d1", "d1, d0")), "d0"]
        out = (self.filled(1), 1)
        return self.generic(maps, '"parallel", "reduction"', [(self.pick(2), 2)], out, body), 1

    def spread(self) -> tuple[str, int]:
        return self.broadcast(self.pick(1)), 2

    def broadcast(self, source: str) -> str:
        body = f"    linalg.yield %x : {self.element}"
        maps = [self.random.choice(("d0", "d1")), "d0, d1"]
        return self.generic(maps, '"parallel", "parallel"', [(source, 1)], (self.empty(2), 2), body)

    def pad(self) -> tuple[str, int]:
        """Padded, and cut to the size again."""
        low, high = (self.random.randint(0, 2) for _ in range(2))
        at = self.random.randint(0, low + high)
        extent = "?" if self.size is None else str(self.size + low + high)
        padded = f"tensor<{extent}x{extent}x{self.element}>"
        source, value = self.pick(2), self.random.choice((self.zero, self.two))
        found = self.define(
            f"tensor.pad {source} low[{low}, {low}] high[{high}, {high}] {{\n  ^bb0(%i: index, %j: index):\n"
            f"    tensor.yield {value} : {self.element}\n  }} : {self.kind(2)} to {padded}"
        )
        size = self.extent if self.size is None else str(self.size)
        return self.define(
            f"tensor.extract_slice {found}[{at}, {at}] [{size}, {size}] [1, 1] : {padded} to {self.kind(2)}"
        ), 2

    def slices(self) -> tuple[str, int]:
        """A part of one tensor in another."""
        if self.size is None:
            return self.elementwise()
        part = self.random.randint(1, self.size)
        start, end = (self.random.randint(0, self.size - part) for _ in range(2))
        kind = f"tensor<{part}x{self.size}x{self.element}>"
        cut = self.define(
            f"tensor.extract_slice {self.pick(2)}[{start}, 0] [{part}, {self.size}] [1, 1] : {self.kind(2)} to {kind}"
        )
        return self.define(
            f"tensor.insert_slice {cut} into {self.pick(2)}[{end}, 0] [{part}, {self.size}] [1, 1] "
            f": {kind} into {self.kind(2)}"
        ), 2
