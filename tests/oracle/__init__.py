"""Oracles that share no code with what they judge: TVM for programs and schedules, brute force for index maps."""
