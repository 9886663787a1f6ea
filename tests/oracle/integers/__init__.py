"""A second implementation of the kernel's arithmetic (`refutations.c`), and what the two are compared on."""
