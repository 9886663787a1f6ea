"""Counterexamples: inputs on which two programs were run and seen to differ."""
