"""The codes of errors in a text, with what each means."""

from __future__ import annotations

from collections.abc import Mapping

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
