"""Passes that put copies, and buffers of another extent, between a block and what it accesses."""
