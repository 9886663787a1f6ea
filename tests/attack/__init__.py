"""Attacks on the checker: random programs, random rewrites of them, mutants, and a judge that runs both programs."""
