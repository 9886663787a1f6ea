"""Lockstep: two programs that do the same things in the same order, cells renamed."""
