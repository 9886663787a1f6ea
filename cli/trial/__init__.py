"""Kernels of a program: its steps proved, the kernel built, run on random inputs, and compared."""
