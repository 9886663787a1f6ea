"""The reference interpreter: what a program does on arrays, with every fault detected.

`run` (and `run_fillings`) execute a function in full, `run_slice` only what chosen cells depend on (`slice_inputs`
gives the elements of parameters that they depend on), `count_instances` counts the instances of a full run. A faulty
program ends with a `Fault`.
"""

from layoutproof.ir.interp.memory import Fault, FaultKind, Fill, Filling, all_fillings
from layoutproof.ir.interp.run import DEFAULT_LIMIT, FillingRuns, Result, run, run_fillings, same_values
from layoutproof.ir.interp.slice_cells import count_instances
from layoutproof.ir.interp.slicing import SliceResult, run_slice, slice_inputs

__all__ = [
    "DEFAULT_LIMIT",
    "Fault",
    "FaultKind",
    "Fill",
    "Filling",
    "FillingRuns",
    "Result",
    "SliceResult",
    "all_fillings",
    "count_instances",
    "run",
    "run_fillings",
    "run_slice",
    "same_values",
    "slice_inputs",
]
