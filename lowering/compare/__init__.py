"""Translation validation of two given programs: the search for a witness, which the checker then decides about."""
