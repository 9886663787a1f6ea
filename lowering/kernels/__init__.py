"""Ready kernels, made of proved steps alone: layout changes and reference schedules of operators."""
