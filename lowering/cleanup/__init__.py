"""Transforms that remove work or redundancy: no-ops, mergeable and hoistable conditions, loads of known values."""
