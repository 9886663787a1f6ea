"""What the command line's tests share."""

import pytest
from tests.cli.calling import Caller


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Caller:
    """A function that runs the command line in this process: without the default limit of time, which takes others."""
    monkeypatch.setattr("layoutproof.cli.gate_run.SECONDS", None)
    return Caller(capsys)
