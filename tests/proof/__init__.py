"""What the checker decides, case by case: programs as texts, the verdict expected of each."""
