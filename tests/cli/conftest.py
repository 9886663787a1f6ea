"""What the command line's tests share."""

import pytest
from tests.cli.calling import Caller


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Caller:
    """A function that runs the command line in this process."""
    return Caller(capsys)
