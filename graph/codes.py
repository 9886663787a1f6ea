"""The codes of everything that can be wrong with a graph, with what flows through it, and with a plan, each with what it means."""

from __future__ import annotations

from collections.abc import Mapping

TWO_VALUES = "LP601"
NO_VALUE = "LP602"
OPERANDS = "LP603"
OPERAND_TYPE = "LP604"
RESULT_TYPE = "LP605"
FUNCTION_FORM = "LP606"
NO_OUTPUT = "LP607"
TRANSFORM_MAP = "LP608"
PAD_WIDTHS = "LP609"
CROP_BOX = "LP610"
PAD_SCALAR = "LP611"
CONSTANT_DATA = "LP612"
OPERATOR_ARGUMENT = "LP613"
GRAPH_TEXT = "LP614"
GRAPH_NAME = "LP615"
RUN_INPUT = "LP616"
TWO_FUNCTIONS = "LP617"
VALUE_NAME = "LP618"
GRAPH_WRITE = "LP619"
NO_FLOW = "LP621"
NOT_A_COPY = "LP622"
FOLD_INTO = "LP623"
LAYOUT_NAMES = "LP631"
NO_PLAN = "LP632"
COST_TABLE = "LP633"
LAYOUT_FILE = "LP634"
MODEL_FILE = "LP641"
MODEL_OPERATOR = "LP642"
MODEL_SHAPE = "LP643"
MODEL_RUNTIME = "LP644"

MEANINGS: Mapping[str, str] = {
    TWO_VALUES: "Every value of a graph is made in one place and has a name of its own.",
    NO_VALUE: "A step of a graph uses a value that no step before it makes.",
    OPERANDS: "A call has one operand for each array that the function only reads, and one result for each array that it writes.",
    OPERAND_TYPE: "An operand has the shape and the data type of the function's parameter that it is given for.",
    RESULT_TYPE: "What a step makes has the shape and the data type that the step says.",
    FUNCTION_FORM: "A graph calls functions over whole arrays of known extents that are either only read or freshly written.",
    NO_OUTPUT: "A graph has at least one output, and each is a value of the graph.",
    TRANSFORM_MAP: "A layout_transform moves every element to a place of its own and leaves no place empty: its map is a bijection.",
    PAD_WIDTHS: "A pad says for each axis how many cells come before and after, none of them below zero.",
    CROP_BOX: "A crop keeps a box that lies inside its operand: a start and a size for each axis.",
    PAD_SCALAR: "What is padded or was cropped is one number of the operand's data type, or undef.",
    CONSTANT_DATA: "A constant's array is missing, or is not the one that the graph's text speaks of.",
    OPERATOR_ARGUMENT: "An operator's shapes and attributes do not fit together.",
    GRAPH_TEXT: "A graph's text is a function of assignments, one for each step, and a return; nothing in it is executed.",
    GRAPH_NAME: "A graph's text calls a function or an operator that is not there.",
    RUN_INPUT: "A graph is run on one array for each input, of the input's shape and data type.",
    TWO_FUNCTIONS: "Functions of a graph that differ have names that differ in its text.",
    VALUE_NAME: "The name of a value is one that a graph's text can have: an identifier of Python, and no keyword.",
    GRAPH_WRITE: "A graph's text and arrays are written whole, both or neither, into a folder that is there and may be written to.",
    NO_FLOW: "A layout does not flow through an operator: some access of it would not be a clean image of the layout any more.",
    NOT_A_COPY: "A function does more than move elements, so it is no layout rewrite.",
    FOLD_INTO: "A layout transform is folded into a call that makes its operand for it alone, or into one that takes its result.",
    LAYOUT_NAMES: "A layout is asked for by an operator's name and one map for each of its arrays.",
    NO_PLAN: "No assignment of layouts meets all that is frozen.",
    COST_TABLE: "A table of costs has a cost, not below zero, for every rewrite that a plan may need.",
    LAYOUT_FILE: "A file of layouts is TOML or JSON: tables of operators, of calls, and of inputs and outputs, each with layouts.",
    MODEL_FILE: "The file is not a model that can be read, or the reader for it is not installed.",
    MODEL_OPERATOR: "The model has an operator, or a use of one, that is not translated.",
    MODEL_SHAPE: "The model leaves an extent open that no size is given for, or a size is given for none.",
    MODEL_RUNTIME: "onnxruntime, with which a model is compared, is not installed, or does not run it.",
}
