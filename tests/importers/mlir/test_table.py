"""The tables of operations against the page that lists them."""

import re

from tests.tree import ROOT

from layoutproof.importers.mlir.translate import TABLE

PAGE = (ROOT / "docs" / "reference" / "mlir.md").read_text(encoding="utf-8")


def test_every_operation_is_listed() -> None:
    """The page lists each operation that has a translation, and no other, with their number."""
    listed = set()
    for dialect, number, names in re.findall(r"^\| `(\w+)` \| (\d+) \| (.*) \|$", PAGE, flags=re.MULTILINE):
        if dialect != "func":
            operations = re.findall(r"`([^`]+)`", names)
            assert len(operations) == int(number)
            listed |= {f"{dialect}.{name}" for name in operations}
    assert listed == set(TABLE)
