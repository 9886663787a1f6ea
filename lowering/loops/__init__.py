"""Passes that rewrite loops."""
