"""The codes of everything that can be wrong with a transform or a trace, with what each means."""

from __future__ import annotations

from collections.abc import Mapping

NO_BUFFER = "LP301"
TWO_BUFFERS = "LP302"
NO_BLOCK = "LP303"
TWO_BLOCKS = "LP304"
PAD_TYPE = "LP305"
PAD_LOADS = "LP306"
PAD_UNDEF = "LP307"
NOT_IN_BLOCK = "LP308"
MAP_ARITY = "LP309"
PAD_OF_VECTORS = "LP310"
UNKNOWN_ARGUMENT = "LP311"
MISSING_ARGUMENT = "LP312"
ARGUMENT_TYPE = "LP313"
NOT_INJECTIVE = "LP314"
ALIASES = "LP315"
STRIDES = "LP316"
POINTER_USE = "LP317"
VECTOR_INDEX = "LP318"
FIXED_INTERFACE = "LP319"
NOT_PROVED = "LP320"
SEPARATORS = "LP321"
PADDING_UNKNOWN = "LP322"
PAD_REFERENCE = "LP325"
RECORD_MAP = "LP329"
INDEX_TYPE = "LP330"
SEPARATOR_ATTRIBUTE = "LP323"
TRANSFORM_ATTRIBUTE = "LP324"
TRACE_FORM = "LP326"
UNKNOWN_PRIMITIVE = "LP327"
TRACE_JSON = "LP328"
MATCHED_REGION = "LP331"
INIT_PLACE = "LP332"
BINDING_CHANGES = "LP333"
NO_LOOP = "LP334"
TWO_LOOPS = "LP335"
LOOP_KIND = "LP336"
SPLIT_FACTORS = "LP337"
LOOP_NEST = "LP338"
NO_ORDER = "LP339"
NO_GUARD = "LP340"
BLOCKS_FIRST = "LP341"
STRIDES_AND_SEPARATORS = "LP342"
NO_STEP = "LP349"
UNDEF_IN_CONTROL = "LP351"
SEVERAL_ACCESSES = "LP352"
NO_ITERATORS = "LP353"
NOT_TEMPORARY = "LP354"
LOOP_OUTSIDE = "LP355"
NO_PADS = "LP356"
NO_EINSUM = "LP357"
LANES = "LP361"
EXPANSION = "LP362"
NOT_ADJACENT = "LP363"
BLOCK_MAP = "LP364"
PARTITION = "LP365"
NO_PADDING = "LP371"
NO_LAYOUT_STEP = "LP372"
NO_LANES = "LP381"
POINTER_CASTS = "LP382"
VECTOR_TARGET = "LP383"
HOIST_FLAG = "LP387"
LET_INSIDE = "LP388"
HOIST_COPIES = "LP389"
PAD_VALUE = "LP373"
BRANCH_NEEDED = "LP374"
GATE_FORM = "LP345"
GATE_RESULT = "LP346"
CACHE_DAMAGED = "LP366"
CACHE_UNUSABLE = "LP367"
CACHE_FOREIGN = "LP368"
CACHE_ENTRY = "LP369"
COMPARED_PARAMETERS = "LP375"
COMPARED_ORDER = "LP376"
COMPARED_MATCH = "LP377"
COMPARED_LAYOUT = "LP378"
COMPARED_SYMBOL = "LP379"
COMPARED_RECORD = "LP380"

MEANINGS: Mapping[str, str] = {
    NO_BUFFER: "The function has no buffer of that name, neither as a parameter nor in its body.",
    TWO_BUFFERS: "Two buffers have that name, so it does not say which is meant. Rename one of them.",
    NO_BLOCK: "The function has no block of that name. The body itself is called root.",
    TWO_BLOCKS: "Two blocks have that name, so it does not say which is meant. Rename one of them.",
    PAD_TYPE: "A pad value is one value of the buffer's type, or a function of as many indices as the physical box has axes.",
    PAD_LOADS: "A pad value loads from the transformed buffer itself or from nothing: no contract depends on another buffer.",
    PAD_UNDEF: "undef is a pad value by itself. In an index, a condition or a larger value it would make the contract undefined.",
    NOT_IN_BLOCK: "The block named in the transform does not access the buffer; most likely one of the two names is wrong.",
    MAP_ARITY: "An index map takes one index for each axis of the buffer.",
    PAD_OF_VECTORS: "What padding holds is assumed element by element; an assumption is one truth value, not one for each lane.",
    UNKNOWN_ARGUMENT: "A step has an argument that its primitive does not take.",
    MISSING_ARGUMENT: "A step lacks an argument that its primitive needs.",
    ARGUMENT_TYPE: "An argument of a step is data of another kind than its primitive takes.",
    NOT_INJECTIVE: "Two elements would be stored in one place, or nobody could show that none are. Such a map loses data.",
    ALIASES: "Other buffers share the memory. Re-laying one view would leave the others reading wrong places; all go together or none.",
    STRIDES: "The buffer has strides or an offset, which already say where its cells lie.",
    POINTER_USE: "The buffer's memory is used by its address, where a change of layout cannot be followed.",
    VECTOR_INDEX: "A vector access reaches neighbours in the old layout; in the new one they need not be neighbours.",
    FIXED_INTERFACE: "The schedule was made with a fixed interface, so the layout of a parameter may not change.",
    NOT_PROVED: "What textures ask of a kernel was not proved, so it is not built. The report has the claim and the counterexample.",
    SEPARATORS: "Axis separators are increasing indices of axes before the last.",
    PAD_REFERENCE: "A pad value may load elements of the buffer, not padding: what padding holds may not depend on other padding.",
    RECORD_MAP: "A layout record must state maps that are injective and stay in their boxes; a program that is read may claim anything.",
    INDEX_TYPE: "The index arithmetic of a layout is signed; an access by another type, or an extent past its type, cannot be re-laid.",
    PADDING_UNKNOWN: "No formula was found for the cells that no element is stored in, so they cannot be filled.",
    SEPARATOR_ATTRIBUTE: "The attribute buffer_axis_separators maps data variables to lists of integers.",
    TRANSFORM_ATTRIBUTE: "The attribute buffer_layout_transformations maps data variables of the function to lists of index maps.",
    TRACE_FORM: "A trace is a list of steps, each a list of two: a primitive's name, and an object with its arguments.",
    UNKNOWN_PRIMITIVE: "A trace names a primitive that there is not.",
    TRACE_JSON: "The file is not JSON as the standard has it (NaN and Infinity are not).",
    MATCHED_REGION: "A block views a region of another buffer under a name of its own. Such blocks are kept, but not lowered.",
    INIT_PLACE: "The block's init runs once for each result, and no place among the loops is known to do that.",
    BINDING_CHANGES: "A block's variable is bound to what is in memory when the block is entered; the block itself changes that memory.",
    NO_LOOP: "There is no such loop around the block. A loop is named by its variable, or by its position from the outside.",
    TWO_LOOPS: "Two loops have that variable, so it does not say which is meant. Name the loop by its position.",
    LOOP_KIND: "The loop runs on a hardware thread axis, whose extent is part of how the kernel is launched.",
    SPLIT_FACTORS: "The loops made by a split must cover the old one; one factor that is null becomes as large as that takes.",
    LOOP_NEST: "Loops change places only where nothing but loops and branches stands between them, and no range depends on the other.",
    NO_ORDER: "The loops cannot be made to follow a buffer: its index must be a function of them that can be turned around.",
    NO_GUARD: "The block has no such guard: no condition in it or around it that could be dropped.",
    BLOCKS_FIRST: "The transform takes loops and accesses; blocks have to be lowered before.",
    STRIDES_AND_SEPARATORS: "Memory with more than one physical axis has no strides of its own and no offset.",
    NO_PADDING: "The block touches no padding there: nothing that it does could be kept away from some.",
    NO_LAYOUT_STEP: "Pad values are tried in the step that re-laid the buffer; the schedule has no such step.",
    NO_STEP: "A schedule without steps has none to take back.",
    SEVERAL_ACCESSES: "A buffer over the iterators of a block has one cell for each instance, so the block may access one place only.",
    NO_ITERATORS: "What is indexed by a block's iterators must be decided by these alone.",
    NOT_TEMPORARY: "Only memory that the function allocates for itself can change its extent.",
    LOOP_OUTSIDE: "A buffer that iterations take in turns is allocated outside the loop, and used inside it only.",
    NO_PADS: "The block does not pad: it stores no choice between something inside and a constant outside.",
    NO_EINSUM: "Iterators are padded where each has a loop of its own, and buffers are indexed by iterators by themselves.",
    UNDEF_IN_CONTROL: "An index, a range or a condition would be undefined, and with it what the program does.",
    LANES: "The lanes of a vector are as many as a vectorized loop has iterations: a constant, and no such loop stands in another.",
    EXPANSION: "Only a loop with a constant number of iterations, and not too many of them, is written out.",
    NO_LANES: "A vectorized loop becomes lanes: a constant number of them, each statement one for all lanes, indices alike but the last.",
    POINTER_CASTS: "The target cannot see memory under another number of lanes; there buffers get vectors as elements, or accesses stay.",
    VECTOR_TARGET: "There is no such target; what one allows of vectors is in a table.",
    HOIST_FLAG: "What may be hoisted is said by flags, and there is none of that name.",
    LET_INSIDE: "The condition needs a value that is bound inside the loop, and the flags do not let that come along.",
    HOIST_COPIES: "A condition with two arms copies its loop; so many of them would make the program too large.",
    NOT_ADJACENT: "Two loops become one where the second stands right behind the first, runs as often, and counts in the same type.",
    BLOCK_MAP: "A block runs over another space where its variables are its loops, and new ones are functions of old ones of one kind.",
    PAD_VALUE: "With this value in the padding a branch cannot go: the iterations that it kept away change what is seen.",
    BRANCH_NEEDED: "A branch cannot go: what it keeps away changes what is seen, and no padding holds a stated value that makes up for it.",
    GATE_FORM: "A gate is a function that takes the arguments of each of its cases, by name or in order, and nothing else.",
    GATE_RESULT: "A gate returns what it proved: a schedule, a comparison, the report of a map, or a list of such.",
    PARTITION: "A loop is cut between its iterations, and nothing in it happens once for all of them.",
    CACHE_DAMAGED: "The proof cache was not what was written there. It was moved away under a name that says so, and a new one was begun.",
    CACHE_UNUSABLE: "The proof cache cannot be read or written, so the run goes on without it: results are the same, and take longer.",
    CACHE_FOREIGN: "What stands at the proof cache's place is something else. It was left as it is.",
    CACHE_ENTRY: "An entry of the proof cache is not what was written there. It was set aside, and what it said is proved again.",
    COMPARED_PARAMETERS: "A parameter of one program cannot be passed to the other: their number, kind or type differs.",
    COMPARED_ORDER: "A parameter of both programs stands in another place, so that its place says one thing and its name another.",
    COMPARED_MATCH: "A pair of parameters is one name after and one name before, each of a parameter, and each used once.",
    COMPARED_LAYOUT: "A layout or a pad value belongs to a parameter of the program before, and fits its shapes before and after.",
    COMPARED_SYMBOL: "Each symbol of the program after is something that the program before has: by its place in a shape, or by its name.",
    COMPARED_RECORD: "Where the program after says itself how a parameter came to lie, that begins where the program before left it.",
}
