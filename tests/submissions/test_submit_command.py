"""`manage.py submit` waits in a terminal until the file is read, and says the reason."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from kbpo.submissions.ingest import tick as ingest
from kbpo.submissions.models import Submission
from kbpo.web.management.commands import submit
from tests.conftest import Toy


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def say(toy: Toy, kb: list[str], tmp_path: Path) -> Any:
    """Submits a file; what is printed, on both streams."""

    def run(text: str, out: io.StringIO, **options: Any) -> tuple[str, str]:
        path, err = tmp_path / "run.tac", io.StringIO()
        path.write_text(text)
        call_command(
            "submit",
            "toy",
            path,
            user=toy.users["Rosa"].username,
            stdout=out,
            stderr=err,
            **options,
        )
        return out.getvalue(), err.getvalue()

    return run


def test_it_waits_in_a_terminal_alone(
    say: Any, kb: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []

    def work(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 2:
            Submission.objects.update(status="planned")

    monkeypatch.setattr(submit.time, "sleep", work)
    monkeypatch.setattr(submit, "PATIENCE", 0.0)
    said, beside = say("\n".join(kb), Terminal())
    assert len(looks) == 2 and said.endswith("Waiting for you.\n")
    assert beside.startswith("Received, 0 % read\n") and "tick --until-idle" in beside
    said, _ = say("\n".join(kb), io.StringIO(), again=True)
    assert len(looks) == 2 and said.endswith("was received: Patterns has a “run” already.\n")


def test_it_prints_why_a_file_cannot_be_used_and_ends_well(
    say: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submit.time, "sleep", lambda _: ingest())
    said, _ = say('{"doc": "d9"}\n', io.StringIO(), wait=True)
    row = Submission.objects.get()
    assert row.status == "refused" and said.splitlines()[1:] == [row.reason]


def test_who_stops_watching_stops_nothing(say: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(submit.time, "sleep", stop)
    _, beside = say("x", Terminal())
    assert beside.endswith("Stopped watching. The service goes on.\n")
