"""Two systems that are compared: what one wins the other loses, in every variance."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from django.core.management import call_command

from kbpo.accounts.models import Team, User
from kbpo.evaluation.leaderboard import read_board
from kbpo.evaluation.models import Evaluation
from kbpo.evaluation.run import score_track
from kbpo.instances.models import Target
from kbpo.instances.record import NewLabel, record_labels
from kbpo.releases.write import write_release
from kbpo.sampling.confirm import confirm_plan
from kbpo.sampling.open_track import Money, close_track, create_track, open_track
from kbpo.submissions.models import Submission
from kbpo.submissions.receive import store_submission
from kbpo.tracks.models import Track
from kbpo.tracks.texts.declared import store_form
from scoring.release import Release, read_data
from scoring.rescore import rescore_release
from tests.test.tracks.test_declared_forms import BETTER, INPUTS, corpus_of

WINS = 8
"""Of Ann's system, by one judgment of each of the fourteen pairs"""


def judged_track(tmp_path: Path) -> Track:
    """A track on which one person judged every pair of two systems: 8 to 6."""
    store_form(BETTER)
    track = open_track(
        create_track(
            corpus_of(tmp_path),
            "Pairs",
            kind="form-better",
            target_half_width=Decimal("0.010"),
            money=Money(budget=Decimal(90)),
        )
    )
    for name in ("Ann", "Bob"):
        user = User.objects.create_user(name, is_researcher=True)
        team = Team.objects.create(name=name, slug=name.lower())
        team.members.add(user)
        lines = (json.dumps({"input_id": key, "output": f"{key} by {name}"}) for key in INPUTS)
        store_submission(
            track, team, user, io.BytesIO("\n".join(lines).encode()), name=name, file_name="a.jsonl"
        )
    call_command("tick", "--until-idle", verbosity=0)
    for run in Submission.objects.order_by("pk"):
        confirm_plan(run, run.team.members.get())
        call_command("tick", "--until-idle", verbosity=0)
    pairs = Target.objects.filter(corpus=track.corpus).order_by("pk")
    assert len(pairs) == len(INPUTS)
    for number, pair in enumerate(pairs):
        ann_is_first = pair.content["texts"][0].endswith("Ann")
        first_wins = float((number < WINS) == ann_is_first)
        value = {"ratings": {"preferred": [first_wins]}}
        record_labels([NewLabel(pair.pk, value, "crowd", "ratings", 1, f"q:{pair.pk}")])
    for _ in range(2):  # the first run was looked at before the second one's labels were
        call_command("tick", "--until-idle", verbosity=0)
    assert set(Submission.objects.values_list("status", flat=True)) == {"scored"}
    return track


@pytest.mark.django_db
def test_systems_that_one_opinion_a_pair_hardly_parts_are_not_told_apart(tmp_path: Path) -> None:
    """8 to 6 was rank 1 and rank 2 "at 95 %": what people differ by went the same way for both, and
    so was nothing of their difference.
    """
    track = judged_track(tmp_path)
    rows = read_board(track, distribution="instance", criterion="preferred").rows
    assert [(row.submission.name, row.rank) for row in rows] == [("Ann", (1, 2)), ("Bob", (1, 2))]
    close_track(track)
    track.refresh_from_db()
    score_track(track)
    report = Evaluation.objects.latest("number").report
    covariance = np.array(report.comparisons["mean", "preferred", "instance"].covariance)
    np.testing.assert_allclose(covariance, covariance[0, 0] * np.array([[1, -1], [-1, 1]]))
    assert covariance[0, 0] > 0
    write_release(track, tmp_path / "release")
    release = Release(tmp_path / "release")
    found = rescore_release(release)
    assert found.agrees, [*found.altered, *map(str, found.differences)][:5]
    [[_, system], [_, other]] = release.lines("systems")
    lowers = [row["lowers"] for _, row in release.lines("labels")]
    assert sorted({name for [name] in lowers}) == sorted([system["system"], other["system"]])
    offline = read_data(release).noise["preferred"].lowers
    assert offline is not None and offline.sum(axis=1).tolist() == [1] * len(INPUTS)
