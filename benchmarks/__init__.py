"""Measurements. A package, since one of that name comes with xDSL and would be found first."""
