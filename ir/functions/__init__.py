"""Named math functions as data: each a sequence of float64 operations, which an evaluator runs and generators print."""
