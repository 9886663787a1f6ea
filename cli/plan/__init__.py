"""What `plan` is asked for, what it does, and what it found."""
