"""The language server: what editors show of maps, schedules, gates and programs while they are typed."""
