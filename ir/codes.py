"""The codes of errors in texts, index maps and their shapes, layout records, interpreted runs and rewrites, with what
each means.

Those of well-formedness stand beside their rules in `wellformed.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

MAP_FORM = "LP101"
SHAPE = "LP102"
BELOW_ZERO = "LP103"
RANK = "LP104"
PHYSICAL_SHAPE = "LP105"
RESERVED_NAME = "LP106"
TOO_WIDE = "LP107"
NO_VALUE = "LP108"
SIDE_CONDITION = "LP130"
BOX_NAME = "LP131"
TOO_MANY_CELLS = "LP132"
NOTATION = "LP134"
NOTATION_INCOMPLETE = "LP135"
NOT_WRITTEN = "LP136"
ARGUMENT = "LP137"
NOT_INTERPRETED = "LP180"
RUN_ARGUMENT = "LP181"
RUN_LIMIT = "LP182"
NO_SLICE = "LP183"
LAYOUT_RECORD = "LP185"
REWRITE_HEADER = "LP186"
REWRITE_PROGRAMS = "LP187"
REWRITE_WITNESS = "LP188"
SYNTAX = "LP110"
EMPTY = "LP111"
UNDECODABLE = "LP112"
TOO_DEEP = "LP113"
UNREADABLE_FILE = "LP114"
NUMBER_RANGE = "LP115"
UNDEFINED_NAME = "LP116"
UNSUPPORTED = "LP117"
UNKNOWN_FUNCTION = "LP118"
WRONG_TYPE = "LP119"
WRONG_ARGUMENTS = "LP120"
NOT_A_MAP = "LP121"
LAYOUT_STRING = "LP122"
EXTENT = "LP123"
BOUND_TWICE = "LP124"
MISPLACED = "LP125"
FUNCTIONS = "LP126"
BUFFER_USE = "LP127"
ASSERTION = "LP128"
INIT_GUARDED = "LP129"
UPSTREAM_DIFFERS = "LP133"

MEANINGS: Mapping[str, str] = {
    MAP_FORM: (
        "An index map is a function of positional indices that returns a list of integer expressions and "
        "AXIS_SEPARATORs."
    ),
    SHAPE: "An extent of a shape is an integer of at least 1, a symbol, or an integer expression over symbols.",
    BELOW_ZERO: "The map sends an index below zero. Physical indices start at 0.",
    RANK: "The numbers of indices, axes or extents differ: a map takes one index for each axis of the shape.",
    PHYSICAL_SHAPE: "The given physical shape does not contain the map's image, or is not proved to.",
    RESERVED_NAME: "p0, p1, ... are the names of the physical indices, and cannot be used in a shape.",
    TOO_WIDE: "A number does not fit the type of its index, or 64 bits.",
    NO_VALUE: "The map divides by zero or shifts too far at some index of the shape.",
    NOTATION: (
        "The text is no layout in its notation: CuTe, Triton, MLIR, oneDNN, einops, isl, strides, XLA or matrix "
        "instructions."
    ),
    NOTATION_INCOMPLETE: (
        "The layout does not determine its map: its shape or a length is missing or does not fit, or its notation "
        "cannot be told."
    ),
    ARGUMENT: "An argument of a function of the Python package has another type than the function takes.",
    NOT_WRITTEN: "The map cannot be written in the chosen notation; the message has an index that shows it.",
    SIDE_CONDITION: "A condition is one boolean expression over the symbols of the shape.",
    BOX_NAME: "The physical box is computed by digits, or as tight as possible.",
    TOO_MANY_CELLS: "The physical shape has more cells than an array can hold.",
    NOT_INTERPRETED: "The program has an operation that the reference interpreter does not define.",
    RUN_ARGUMENT: "An argument of a run does not fit the function: its number, its type or its shape.",
    RUN_LIMIT: "The run takes more iterations than allowed and was stopped.",
    NO_SLICE: "The iterations that compute the chosen cells cannot be separated from the others.",
    LAYOUT_RECORD: (
        "The attribute layoutproof.layout holds, for a data variable, a logical shape and the steps that led to its "
        "layout."
    ),
    REWRITE_HEADER: "The text of a rewrite begins with comment lines, each `# key: value` with a known key.",
    REWRITE_PROGRAMS: "The text of a rewrite holds two programs, `before` and `after`.",
    REWRITE_WITNESS: "A line of a rewrite's witness names a store that does not exist, or cannot be read.",
    SYNTAX: (
        "The text is not Python syntax. Programs and maps are read with Python's grammar; nothing in them is executed."
    ),
    EMPTY: "The text is empty, or has only blanks and comments.",
    UNDECODABLE: "The text holds null bytes or is not UTF-8: most likely a binary file.",
    TOO_DEEP: (
        "Expressions or statements are nested deeper than any program needs. Name parts of the expression with a let."
    ),
    UNREADABLE_FILE: "The file does not exist, is a directory, or may not be read.",
    NUMBER_RANGE: "A number does not fit the required type, or 64 bits.",
    UNDEFINED_NAME: "A name is used that no parameter, loop, block axis or earlier declaration binds.",
    UNSUPPORTED: "This Python syntax is not part of the language of programs and maps.",
    UNKNOWN_FUNCTION: "A function or intrinsic is unknown.",
    WRONG_TYPE: (
        "An operand has a type that its operation does not take: a boolean in arithmetic, a float as an index, "
        "different lanes."
    ),
    WRONG_ARGUMENTS: "A call has too many, too few, repeated or unknown arguments, or one of the wrong sort.",
    NOT_A_MAP: "An index map is a lambda of named indices that returns a list of integer expressions.",
    LAYOUT_STRING: (
        "A layout string such as NCHW4c names each axis once in upper case, and its tiles in lower case with their "
        "sizes."
    ),
    EXTENT: "An extent of a shape is an integer of at least 1, or an expression over symbols.",
    BOUND_TWICE: "A name is bound again in its own scope. Consecutive loops may share a name, nested ones may not.",
    MISPLACED: "A statement is in a wrong place: T.init outside its block, T.reads after the block's first statement.",
    FUNCTIONS: (
        "The text must have one function decorated with T.prim_func, or a class of them decorated with I.ir_module."
    ),
    BUFFER_USE: "A buffer is used wrongly: without indices, with too many, or matched to no parameter.",
    ASSERTION: "An assertion about a type in the text is false.",
    INIT_GUARDED: (
        "A block's init may not run, as its guard excludes the first step or the reduction is empty, or may come late."
    ),
    UPSTREAM_DIFFERS: (
        "TVM 0.27 computes another result: it simplifies floats, keeps bfloat16 wide, or reads past a guard."
    ),
}
