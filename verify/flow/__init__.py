"""Simulation by dataflow: every read of the new program has the source of the read that it stands for."""
