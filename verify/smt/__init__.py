"""SMT: the only folder that imports z3."""
