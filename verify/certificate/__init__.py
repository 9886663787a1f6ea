"""Certificates: proofs as files that other solvers can check again."""
