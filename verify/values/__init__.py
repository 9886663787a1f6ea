"""Values: whether two expressions are equal, bit for bit or under fast-math assumptions, and invariants of a
buffer's contents.
"""
