"""The commands, one file each: its arguments, the call, the exit code. Heavy imports stand inside functions."""
