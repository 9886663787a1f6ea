"""The schedule: a program, the primitives that transform it, and the trace of its steps."""
