"""Layouts as others write them: compared, converted, and what a memory with banks does with them."""
