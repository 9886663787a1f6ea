"""Expressions beyond arithmetic: math functions, opaque calls and the table of known ones, undefined and extreme
values, pointers, assumptions.

Sources: TVM's RFCs `vectorized-tir-buffers` (pointer casts) and `layout-transformation-padding-roadmap` (arbitrary
values, assumptions).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.dtype import BOOL, HANDLE, INT32, DType, Kind
from layoutproof.ir.expr import Compare, Expr, Logical, Var, require
from layoutproof.ir.operators import CompareOp

# name -> number of arguments. Pure; on floats, except abs, which also takes integers.
MATH_FUNCTIONS: Mapping[str, int] = {
    "exp": 1, "log": 1, "sqrt": 1, "rsqrt": 1, "tanh": 1, "sigmoid": 1, "erf": 1, "pow": 2, "abs": 1, "floor": 1,
    "ceil": 1, "round": 1, "fma": 3, "fmax": 2, "fmin": 2, "maximum": 2, "minimum": 2,
    "exp2": 1, "log2": 1, "log10": 1, "sin": 1, "cos": 1, "tan": 1, "sinh": 1, "cosh": 1, "atan": 1, "trunc": 1,
}  # fmt: skip


class LimitKind(StrEnum):
    """The special values of a type."""

    INFINITY = "infinity"
    MIN = "min_value"
    MAX = "max_value"


@dataclass(frozen=True, slots=True, eq=False)
class StringImm(Expr):
    """A text argument of an opaque call or an attribute."""

    value: str

    @property
    def dtype(self) -> DType:
        """Texts are passed as handles."""
        return HANDLE


@dataclass(frozen=True, slots=True, eq=False)
class PointerCast(Expr):
    """A pointer seen as a pointer to elements of type `pointee`."""

    pointee: DType
    pointer: Expr

    def _check(self) -> None:
        require(self.pointer.dtype.kind is Kind.HANDLE, f"a pointer cast of a {self.pointer.dtype}")

    @property
    def dtype(self) -> DType:
        """A handle."""
        return self.pointer.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Call(Expr):
    """A pure math function of `MATH_FUNCTIONS`."""

    function: str
    arguments: tuple[Expr, ...]

    def _check(self) -> None:
        arity = MATH_FUNCTIONS.get(self.function)
        require(arity is not None, f"unknown math function {self.function}")
        require(arity == len(self.arguments), f"{self.function} takes {arity} arguments, not {len(self.arguments)}")
        first = self.arguments[0].dtype
        require(all(a.dtype == first for a in self.arguments), f"the arguments of {self.function} differ in type")
        require(first.is_float or (self.function == "abs" and first.is_integer), f"{self.function} of a {first}")

    @property
    def dtype(self) -> DType:
        """The type of the arguments."""
        return self.arguments[0].dtype


@dataclass(frozen=True, slots=True, eq=False)
class Reinterpret(Expr):
    """The float that has the bits of an integer of its width, lane by lane (`semantics.float_of_bits`).

    There is no node for the other way: a NaN is any NaN, so its bits are no function of it.
    """

    dtype: DType
    value: Expr

    def _check(self) -> None:
        source, target = self.value.dtype, self.dtype
        alike = (source.bits, source.lanes) == (target.bits, target.lanes)
        require(alike and source.is_integer and target.is_float, f"the bits of {source} as {target}")


@dataclass(frozen=True, slots=True, eq=False)
class OpaqueCall(Expr):
    """An opaque call (extern functions, barriers, atomics, intrinsics): kept and printed; nothing is proved of it."""

    function: str
    arguments: tuple[Expr, ...]
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class Reducer(Expr):
    """How a reduction over threads joins values: `results` over the variables of both sides, and what joins nothing."""

    left: tuple[Var, ...]
    right: tuple[Var, ...]
    results: tuple[Expr, ...]
    identities: tuple[Expr, ...]

    def _check(self) -> None:
        types = [tuple(e.dtype for e in part) for part in (self.left, self.right, self.results, self.identities)]
        require(all(t == types[0] for t in types), "the two sides, the results and the identities differ in type")

    @property
    def dtype(self) -> DType:
        """It stands where a handle stands."""
        return HANDLE


@dataclass(frozen=True, slots=True, eq=False)
class Undef(Expr):
    """An arbitrary value, fresh at each evaluation; may not be duplicated, nor stand in an index or a condition."""

    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class Limit(Expr):
    """`infinity`, `min_value` or `max_value` of a scalar type (for floats, min and max are the finite ones)."""

    kind: LimitKind
    dtype: DType

    def _check(self) -> None:
        require(
            self.dtype.lanes == 1 and (self.dtype.is_float or self.dtype.is_integer), f"{self.kind} of {self.dtype}"
        )
        require(self.kind is not LimitKind.INFINITY or self.dtype.is_float, f"{self.dtype} has no infinity")


@dataclass(frozen=True, slots=True, eq=False)
class Assume(Expr):
    """`assume(condition)`, only in an Evaluate. Its top-level `buffer[...] == value` is value identity."""

    condition: Expr

    def _check(self) -> None:
        require(self.condition.dtype == BOOL, f"an assumption is a truth value, not a {self.condition.dtype}")

    @property
    def dtype(self) -> DType:
        """bool; there is no value to use."""
        return BOOL


def undef(dtype: str | DType) -> Undef:
    """An arbitrary value of a type, as a pad value: the padding may be read and written and holds anything."""
    return Undef(DType.parse(dtype) if isinstance(dtype, str) else dtype)


@dataclass(frozen=True, slots=True)
class OpaqueSignature:
    """How an opaque call is written: its type before the arguments, or after them where it is not the default one."""

    dtype_first: bool
    default: DType = INT32


_TYPED = OpaqueSignature(dtype_first=True)
_PLAIN = OpaqueSignature(dtype_first=False)
_POINTER = OpaqueSignature(dtype_first=False, default=HANDLE)

OPAQUE_CALLS: Mapping[str, OpaqueSignature] = {
    # calls out of the program
    "call_extern": _TYPED,
    "call_pure_extern": _TYPED,
    "call_llvm_intrin": _TYPED,
    "call_llvm_pure_intrin": _TYPED,
    "call_packed": _PLAIN,
    "call_cpacked": _PLAIN,
    "call_intrin": _TYPED,
    "call_spirv_pure_glsl450": _TYPED,
    # pointers and memory
    "address_of": _POINTER,
    "tvm_access_ptr": _POINTER,
    "type_annotation": _POINTER,
    "reinterpret": _TYPED,
    "tvm_stack_alloca": _POINTER,
    "tvm_struct_get": _TYPED,
    "tvm_struct_set": _PLAIN,
    "texture2d_store": _PLAIN,
    "texture2d_load": _TYPED,
    "prefetch": _PLAIN,
    # barriers and threads
    "tvm_storage_sync": _PLAIN,
    "tvm_global_barrier_kinit": _PLAIN,
    "tvm_thread_allreduce": _PLAIN,
    "tvm_thread_invariant": _PLAIN,
    "tvm_warp_shuffle": _TYPED,
    "tvm_warp_shuffle_up": _TYPED,
    "tvm_warp_shuffle_down": _TYPED,
    "tvm_warp_activemask": _PLAIN,
    # atomics
    "atomic_add": _TYPED,
    "atomic_max": _TYPED,
    "atomic_min": _TYPED,
    # tensor instructions
    "tvm_load_matrix_sync": _POINTER,
    "tvm_store_matrix_sync": _POINTER,
    "tvm_mma_sync": _POINTER,
    "tvm_bmma_sync": _POINTER,
    "tvm_fill_fragment": _POINTER,
    "ptx_mma": _TYPED,
    "ptx_mma_sp": _TYPED,
    "ptx_ldmatrix": _TYPED,
    "ptx_cp_async": _TYPED,
    "ptx_commit_group": _PLAIN,
    "ptx_wait_group": _PLAIN,
    "mma_store": _TYPED,
    "mma_fill": _TYPED,
    # conditions and lookups
    "target": _POINTER,
    "lookup_param": _PLAIN,
    "assume_aligned": _PLAIN,
    "vectorlow": _TYPED,
    "vectorhigh": _TYPED,
    "vectorcombine": _TYPED,
    "isnullptr": OpaqueSignature(dtype_first=False, default=BOOL),
    "vscale": _PLAIN,
    "ret": _PLAIN,
    "start_profile_intrinsic": _POINTER,
    "end_profile_intrinsic": _POINTER,
}

# What is called through these stands for an instruction of a device: `T.metal.simdgroup_load(...)`.
DEVICE_NAMESPACES = frozenset({"cuda", "metal", "nvshmem", "ptx", "ptx_legacy", "s_tir", "webgpu"})


def takes_dtype_first(function: str) -> bool:
    """Whether the call's type stands before its arguments. False for a name that is not in the table."""
    signature = OPAQUE_CALLS.get(function)
    return signature is not None and signature.dtype_first


def default_dtype(function: str) -> DType:
    """The type that a call has when its text gives none."""
    return OPAQUE_CALLS.get(function, _POINTER if "." in function else _PLAIN).default


def undef_loads(condition: Expr) -> list[BufferLoad]:
    """The loads that an assumption says to hold an arbitrary value: `A[...] == undef` in its top-level connectives."""
    if isinstance(condition, Logical):
        return undef_loads(condition.lhs) + undef_loads(condition.rhs)
    load = assumed_undef(condition)
    return [load] if load is not None else []


def assumed_undef(condition: Expr) -> BufferLoad | None:
    """The load of `A[...] == undef`, either way round."""
    if isinstance(condition, Compare) and condition.op is CompareOp.EQ:
        for one, other in ((condition.lhs, condition.rhs), (condition.rhs, condition.lhs)):
            if isinstance(one, BufferLoad) and isinstance(other, Undef):
                return one
    return None


def is_identity(condition: Expr) -> bool:
    """Whether a top-level comparison of an assumption is value identity: `A[...] == v`, a float load on one side."""
    if not isinstance(condition, Compare) or condition.op is not CompareOp.EQ or not condition.lhs.dtype.is_float:
        return False
    return isinstance(condition.lhs, BufferLoad) or isinstance(condition.rhs, BufferLoad)
