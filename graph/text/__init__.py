"""Graphs as text: reading and printing, with what is too large for a text in a file of arrays beside it."""
