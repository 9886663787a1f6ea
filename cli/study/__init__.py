"""What `study` reads, does and shows: the run with its progress, the tables, the figures and the page."""
