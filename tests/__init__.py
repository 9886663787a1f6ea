"""The tests. The folders below mirror the rooms of the package; what several of them share lies here."""
