"""What a pass is, how its step is proved or refused, and the helpers that all passes share."""
