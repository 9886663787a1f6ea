"""The codes of claims about maps and rewrites, of certificates and of counterexamples, with their meanings."""

from __future__ import annotations

from collections.abc import Mapping

IMAGE_UNKNOWN = "LP201"
CELLS = "LP210"
INTERFACE = "LP211"
RECORDS = "LP212"
ASSUMED = "LP213"
WITNESS = "LP214"
OUTSIDE = "LP215"
UNDEFINED_READ = "LP216"
PADDING_TOUCHED = "LP217"
OVERFLOW = "LP218"
NO_RESULT = "LP219"
RACE = "LP220"
OTHER_VALUE = "LP221"
OTHER_END = "LP222"
PADDING_POSTCONDITION = "LP223"
UNPROVED = "LP226"
UNDECIDED = "LP230"
VACUOUS = "LP231"
NOT_BY_KERNEL = "LP232"
CERTIFICATE_FORM = "LP240"
CERTIFICATE_CHANGED = "LP241"
CERTIFICATE_DIFFERS = "LP242"
CERTIFICATE_WRITE = "LP243"
COUNTEREXAMPLE = "LP250"

MEANINGS: Mapping[str, str] = {
    IMAGE_UNKNOWN: (
        "It is not decided whether the map has a negative index, or divides by zero, at some index of the shape."
    ),
    CELLS: (
        "Two elements are stored in one cell, or one outside of its buffer: the map of a buffer is not injective "
        "into it."
    ),
    INTERFACE: (
        "A parameter changes for callers without a declaration: its order, type or shape, or that it is read only."
    ),
    RECORDS: "The layout record of a parameter is not consistent with the program.",
    ASSUMED: "The rewrite has a precondition that the program before does not have.",
    WITNESS: "The witness does not map every store of the new program to a store of the old one, or to none.",
    OUTSIDE: "An access is out of bounds, or a block's variable is outside of its domain.",
    UNDEFINED_READ: "An uninitialised read: of a cell that was not written, or of padding without a known content.",
    PADDING_TOUCHED: "A store writes padding without a contract, which must not be accessed.",
    OVERFLOW: "An index or a size overflows the type that computes it.",
    NO_RESULT: "An operation is undefined for some values: a division by zero, a shift too far, a cast out of range.",
    RACE: "A race: two iterations that may run concurrently access one cell, and one of them writes.",
    OTHER_VALUE: "A store computes another value than the corresponding store of the old program.",
    OTHER_END: "An output differs from that of the program before the step.",
    PADDING_POSTCONDITION: "Padding does not satisfy its contract when the program ends.",
    UNPROVED: "A claim about the step is refuted; the report has the claim and the counterexample.",
    UNDECIDED: (
        "A claim was neither proved nor refuted: a budget was spent, or it cannot be expressed. The reason says which."
    ),
    VACUOUS: (
        "The preconditions cannot all hold, every run has a fault, or nothing observable is stored, so a proof "
        "would be worthless."
    ),
    NOT_BY_KERNEL: "The checker proves it, but the run or the gate trusts the kernel alone, which does not accept it.",
    CERTIFICATE_FORM: "The file is not a certificate, or has a format that this version does not read.",
    CERTIFICATE_CHANGED: "The file was changed: its hashes, which cover every byte, do not match.",
    CERTIFICATE_DIFFERS: (
        "The checker, run on the programs in the file, has other obligations or other questions than the file."
    ),
    CERTIFICATE_WRITE: "A certificate could not be written.",
    COUNTEREXAMPLE: (
        "A counterexample has numbers for the symbols and an array for each parameter, floats as hexadecimal text."
    ),
}
