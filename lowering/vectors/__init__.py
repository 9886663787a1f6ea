"""Passes that make vectors: lanes of loops, views with vector elements, buffers of vectors."""
