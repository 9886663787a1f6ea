"""One item judged: an outcome for a gate, a schedule, a rewrite or two programs."""
