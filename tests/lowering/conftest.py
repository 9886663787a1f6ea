"""Kernels that tests build go to a folder of the test run, not to the user's cache."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """`$LAYOUTPROOF_CACHE` for the whole run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAYOUTPROOF_CACHE", str(tmp_path_factory.mktemp("kernels")))
        yield
