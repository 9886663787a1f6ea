"""One item judged: a gate, a schedule, a rewrite or two programs becomes an outcome."""
