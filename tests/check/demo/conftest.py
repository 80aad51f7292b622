"""The demo's files that the tests share."""

from pathlib import Path

import pytest

from rehearsal.newspaper import files


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All files of the demo."""
    directory = tmp_path_factory.mktemp("demo")
    files.write_files(directory)
    return directory
