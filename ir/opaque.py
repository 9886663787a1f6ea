"""The intrinsics that are read, printed and kept without anyone looking into them, as a table.

A name that is not here and means nothing to the reader is an error: a call is never taken for an opaque one by accident.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from layoutproof.ir.dtype import HANDLE, INT32, DType


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
}


def takes_dtype_first(function: str) -> bool:
    """Whether the call's type stands before its arguments. False for a name that is not in the table."""
    signature = OPAQUE_CALLS.get(function)
    return signature is not None and signature.dtype_first


def default_dtype(function: str) -> DType:
    """The type that a call has when its text gives none."""
    return OPAQUE_CALLS.get(function, _PLAIN).default
