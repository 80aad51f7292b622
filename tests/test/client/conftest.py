"""The client against the service itself: over HTTP, with the uploads of the pages' tests."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "client"))

from kbpo_client.commands import main

from kbpo.accounts.models import Token
from tests.conftest import Toy
from tests.test.web.conftest import as_user, draft, uploads

__all__ = ["as_user", "draft", "main", "uploads"]
Run = Callable[..., Result]


@pytest.fixture
def run(live_server: Any, toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in a folder of its own, as Rosa unless told otherwise."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    tokens = {
        name: Token.create_with_secret(toy.users[name], "test")[1] for name in ("Rosa", "Tim")
    }

    def command(*words: object, who: str = "Rosa", **options: Any) -> Result:
        given = ["--url", live_server.url]
        if who:
            given += ["--token", tokens[who]]
        return CliRunner().invoke(main, [*given, *map(str, words)], **options)

    return command


def told(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)
