"""Kernels with thread axes: what they mean, as programs with parallel loops."""
