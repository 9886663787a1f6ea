"""The codes of errors in calls of the command line, with their sentences."""

from __future__ import annotations

from collections.abc import Mapping

FILE_ACCESS = "LP501"
OUTPUT = "LP502"
SIZE = "LP503"
PICTURE_FORMAT = "LP504"
NOTHING_TO_DRAW = "LP505"
FUNCTION = "LP506"
TOO_LARGE = "LP507"
FAULT = "LP508"
MEMORY = "LP509"
LAYOUT = "LP510"
NOTHING_TO_CHECK = "LP511"
SOLVERS = "LP512"
CERTIFICATE_OF_MANY = "LP513"
COMPARE_OPTION = "LP514"
COMPARE_NAME = "LP515"
OTHER_TARGET = "LP516"
OUTPUT_PAIR = "LP517"
TOO_FEW = "LP519"
CONFIGURATION = "LP518"
GATE_FILE = "LP555"
GATE_RAISED = "LP556"
NOTHING_PROVED = "LP557"
NO_PROGRAM = "LP558"
TRACES_OF_SEVERAL = "LP559"
TIMEOUT = "LP525"
WORKER_MEMORY = "LP526"
WORKER_DIED = "LP527"
JUDGE_FAILED = "LP528"
SHARD = "LP529"
NO_CLUSTER = "LP530"
CLUSTER_ADDRESS = "LP531"
OTHER_TOOL = "LP532"
NO_SUCH_CODE = "LP550"
SPOOL = "LP535"
SELECTION = "LP536"
BASELINE = "LP537"
JOB_SUMMARY = "LP538"
NO_SERVER = "LP540"
NO_CACHE = "LP520"
CACHE_REFUSED = "LP521"

MEANINGS: Mapping[str, str] = {
    FILE_ACCESS: "The system refused access to a file.",
    OUTPUT: "The output file is a directory, is protected, is read by the run, or its folder does not exist.",
    SIZE: "Sizes are given as --size NAME=NUMBER, one for each symbol; every extent must be at least 1 with them.",
    PICTURE_FORMAT: "A picture's format is given by its file's suffix: .svg or .png.",
    NOTHING_TO_DRAW: "A picture needs a physical box of known numbers, and a number of cells that can be drawn.",
    FUNCTION: "The file has several functions and --function names none of them.",
    TOO_LARGE: "The parameters take more memory than a trial run may use.",
    FAULT: "The program's own run had a fault, such as an access out of bounds.",
    MEMORY: "The machine has too little memory for the question.",
    LAYOUT: "A layout record does not end in the number of cells of its parameter.",
    NOTHING_TO_CHECK: "No named file has a certificate, lemmas, a rewrite with its expected verdict, or a schedule.",
    SOLVERS: "Rechecking needs two solvers, and those that are named must be installed.",
    CERTIFICATE_OF_MANY: "A certificate is of one schedule; a file of several schedules has none.",
    COMPARE_OPTION: "An option of `compare` for a parameter is written NAME=VALUE, once for each; a map has an "
    "index for each axis.",
    COMPARE_NAME: "--layout, --pad and --match name parameters of the programs that are compared.",
    GATE_FILE: "A file of gates is Python with functions decorated with @layoutproof.gate, and must be loadable.",
    GATE_RAISED: "The function of a gate, or its file, raised an exception that is not one of layoutproof's.",
    NOTHING_PROVED: "A schedule without a step proves nothing, so a gate that returns one would always pass.",
    NO_PROGRAM: "A schedule needs its program beside it, under the same name, or named with --trace.",
    TRACES_OF_SEVERAL: "--trace gives the schedules of one program, so exactly one program must be named.",
    OUTPUT_PAIR: "A target writes two files with the suffixes .c and .h, .cl and .json, or .mlir and .json.",
    TOO_FEW: "A run found fewer items than --expect, or the configuration, says that there are at least.",
    CONFIGURATION: "The table [tool.layoutproof] of pyproject.toml has a key or a value that it cannot have.",
    TIMEOUT: "Checking an item took longer than --timeout allows; its worker was ended, and the item is unknown.",
    WORKER_MEMORY: "The worker process of an item used more memory than --memory allows and was ended.",
    WORKER_DIED: "A worker process crashed, was killed, or could not be started; its item was tried twice.",
    JUDGE_FAILED: "Checking an item raised an exception that neither the item nor its files should be able to raise.",
    SHARD: "A part of a run is written I/N: the I-th of N parts, I from 1 to N.",
    NO_CLUSTER: "Checking on a cluster needs the package distributed, which the extra layoutproof[cluster] installs.",
    NO_SERVER: "The language server needs the package pygls, which the extra layoutproof[lsp] installs.",
    CLUSTER_ADDRESS: "No Dask scheduler answers at the address, or it has no usable workers.",
    OTHER_TOOL: "A worker of the cluster has another version of layoutproof or of a solver than this machine.",
    OTHER_TARGET: "A device, or a profile of one, is named for a target that runs on the processor alone.",
    NO_SUCH_CODE: "This code does not exist.",
    SPOOL: "The outcomes of a run are kept in a temporary file, and the disk is full.",
    SELECTION: "--select and --ignore take codes of findings, such as LP216, or their common prefix: LP2, LP21.",
    BASELINE: "A baseline is a file that --write-baseline wrote: JSON with one finding per line, by the hash "
    "of the claim.",
    JOB_SUMMARY: "The file in GITHUB_STEP_SUMMARY cannot be written.",
    NO_CACHE: "There is no proof cache at this place, so there is nothing to verify.",
    CACHE_REFUSED: "The proof cache cannot be read or changed; `check` would continue without it, but the "
    "command `cache` cannot.",
}
