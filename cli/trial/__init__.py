"""Kernels of a program: its steps proved, the kernel built, run on made-up data, and compared."""
