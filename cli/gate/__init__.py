"""The gate: many schedules, gates and rewrites checked in one run, with one outcome each, for people and for CI."""
