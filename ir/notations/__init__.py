"""Texts for layouts, index maps, records of layouts, and rewrites."""
