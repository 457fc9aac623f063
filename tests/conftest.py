"""What holds for all tests."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Prepared images go to a folder of the tests, from child processes too; the user's cache is not touched."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DCCM_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
