"""Proofs kept between runs: where they are kept, how they are sealed, and how each is checked again."""
