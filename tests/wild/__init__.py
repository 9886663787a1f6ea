"""Real bugs of public compilers and libraries, restated as questions with wanted verdicts: tests/data/wild."""
