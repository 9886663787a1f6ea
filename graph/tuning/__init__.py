"""Schedules for the functions of a planned graph, each step proved, and their kernels."""
