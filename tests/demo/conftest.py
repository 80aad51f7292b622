"""The demo corpora that the tests share."""

from pathlib import Path

import pytest

from rehearsal.newspaper.write import write


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small demo, written once."""
    directory = tmp_path_factory.mktemp("demo")
    write(directory, documents=30, seed=3)
    return directory
