"""What metrics are worth, by the Python client and by the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner
from django.db import transaction
from kbpo_client import Client as Remote
from kbpo_client.commands import main
from kbpo_client.commands.scores import FIGURES as OFFERED

from kbpo import clock
from kbpo.evaluation.run import score_track
from kbpo.instances.models import Label
from kbpo.submissions.models import Submission
from kbpo.web.public.metrics import FIGURES
from tests.test.scores.conftest import World, studied, world

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["studied", "world"]


def test_client_and_command_tell_what_a_metric_is_worth(studied: World, live_server: Any) -> None:
    assert set(OFFERED) == set(FIGURES)
    with transaction.atomic():
        score_track(studied.track)
    Submission.objects.update(status="scored")
    Label.objects.update(public_at=clock.now())
    with Remote(live_server.url, frames=False) as remote:
        rows = remote.metrics("answers")
    assert {row["metric"] for row in rows} == {"All together", "judge"}

    def run(*words: str) -> str:
        done = CliRunner().invoke(main, ["--url", live_server.url, "metrics", "answers", *words])
        assert done.exit_code == 0, done.output
        return done.stdout

    head, *lines = run().splitlines()
    assert head.split()[0] == "metric" and len(lines) == 2
    judge = next(row for row in rows if row["metric"] == "judge")
    [line] = [line for line in lines if line.startswith("judge")]
    assert f"{judge['worth']:.2f} ({judge['low80']:.2f}–{judge['high80']:.2f})" in line
    assert json.loads(run("--json")) == rows
    assert "sigma_f2" in run("--figure", "prompts").splitlines()[0]
