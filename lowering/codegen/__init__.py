"""Lowered programs to source text in other languages."""
