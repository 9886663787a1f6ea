"""Verdicts, the claims that they are about, and their codes."""
