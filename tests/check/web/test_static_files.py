"""Of an interface's directory its scripts and style sheets are served, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.staticfiles import finders

from annotation.interfaces.registry import INTERFACES


@pytest.mark.parametrize("name", INTERFACES)
def test_the_script_of_every_interface_is_found(name: str) -> None:
    found = finders.find(f"interfaces/{name}/page.js")
    assert found is not None and Path(found).read_text()


@pytest.mark.parametrize(
    "path",
    [
        "interfaces/relation/tutorial.json",
        "interfaces/relation/interface.py",
        "interfaces/relation/page.html",
        "interfaces/base.py",
        "interfaces/relation/../relation/tutorial.json",
        "interfaces/../settings.py",
    ],
)
def test_right_answers_code_and_templates_are_not_served(path: str) -> None:
    assert finders.find(path) is None
