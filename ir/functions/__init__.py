"""Named math functions as data: each a straight line of float64 operations, which an evaluator runs and generators
print.
"""
