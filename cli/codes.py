"""The codes of everything that can be wrong with a call of the command line, with what each means."""

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
OTHER_TARGET = "LP516"
OUTPUT_PAIR = "LP517"

MEANINGS: Mapping[str, str] = {
    FILE_ACCESS: "The system refused access to a file.",
    OUTPUT: "The file to write to is a directory, is protected, or stands in a folder that does not exist.",
    SIZE: "Sizes are given as --size NAME=NUMBER, one for each name in the shapes; with them every extent is at least 1.",
    PICTURE_FORMAT: "A picture's format is chosen by its file's ending: .svg or .png.",
    NOTHING_TO_DRAW: "A picture needs a physical box known as numbers, and a number of cells that can be drawn.",
    FUNCTION: "The file has several functions and --function names none of them.",
    TOO_LARGE: "The parameters take more memory than a trial run may use.",
    FAULT: "The program's own run met a fault, such as an access out of bounds.",
    MEMORY: "The machine has too little memory for the question.",
    LAYOUT: "A layout record does not end in as many cells as its parameter has.",
    NOTHING_TO_CHECK: "No file was named that holds a certificate, lemmas, a rewrite with its expected verdict, or a schedule.",
    SOLVERS: "Checking again takes two solvers, and those that are named must be installed.",
    CERTIFICATE_OF_MANY: "A certificate tells of one schedule; a file of schedules, one a line, has none.",
    OUTPUT_PAIR: "A target writes two files, told apart by their endings: .c and .h, or .cl and .json.",
    OTHER_TARGET: "A device, or a profile of one, is named for a target that runs on the processor alone.",
}
