"""The gate: many schedules, gates and rewrites checked in one run, one outcome each."""
