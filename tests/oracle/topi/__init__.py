"""Operators of TVM's library and its schedule primitives and passes, as pairs of programs that ought to be the same."""
