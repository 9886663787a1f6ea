"""Work in worker processes: an item that hangs, crashes or takes too much memory loses only its own result."""
