"""Rewrites of a graph before and beside planning, each proved before it is made."""
