"""Where texts are compared two by two, a run that takes for each input the text that was preferred
is printed near its truth, and moves nobody.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from kbpo.accounts.models import Team, User
from kbpo.evaluation.data import read
from kbpo.evaluation.models import Estimate
from kbpo.evaluation.run import evaluate, finished
from kbpo.inclusion.disclosure import Decision, disclosed, earlier
from kbpo.instances.models import Label, Target
from kbpo.instances.record import NewLabel, record
from kbpo.sampling import draw
from kbpo.sampling.confirm import confirm
from kbpo.sampling.models import LeakTest, Sample
from kbpo.sampling.open_track import create_track, open_track
from kbpo.submissions.models import Submission
from kbpo.submissions.receive import receive
from kbpo.tracks.generation.declared import declare
from kbpo.tracks.generation.load import load_inputs
from kbpo.tracks.models import Track
from tests.tracks.test_declared_forms import BETTER

pytestmark = [pytest.mark.django_db, pytest.mark.soak]
INPUTS = tuple(f"article {number}" for number in range(300))
ONE, OTHER = ({key: f"{key} {word}" for key in INPUTS} for word in ("one", "two"))


@pytest.fixture
def track(tmp_path: Path) -> Track:
    declare(BETTER)
    path = tmp_path / "inputs.jsonl"
    path.write_text("".join(json.dumps({"input_id": key}) + "\n" for key in INPUTS))
    corpus = load_inputs("Articles", path)
    return open_track(
        create_track(corpus, "Pairs", kind="form-better", target_half_width=Decimal("0.100"))
    )


def upload(track: Track, name: str, text_of: Mapping[str, str]) -> Submission:
    """A planned run of a team of its own."""
    user = User.objects.create_user(name, is_researcher=True)
    team = Team.objects.create(name=name, slug=name)
    team.members.add(user)
    lines = "\n".join(
        json.dumps({"input_id": key, "output": text}) for key, text in text_of.items()
    )
    row = receive(track, team, user, io.BytesIO(lines.encode()), name=name, file_name="a.jsonl")
    call_command("tick", "--until-idle", verbosity=0)
    return row


def on_board(*rows: Submission) -> None:
    """Nothing; these runs are drawn and judged in stages until it is enough."""
    for row in rows:
        row.refresh_from_db()
        confirm(row, row.user)
    for _ in range(12):
        draw.tick()
        answer()
        evaluate(rows[0].track, finished(rows[0].track))
        if all(Submission.objects.get(pk=row.pk).status == "scored" for row in rows):
            return
    raise AssertionError("not scored")


def is_first_better(content: Mapping[str, list[str]]) -> bool:
    """Whether people prefer the first text of a pair: as it were by the toss of a coin."""
    return bool(crc32(" ".join(sorted(content["texts"])).encode()) >> 7 & 1) == (
        content["texts"] == sorted(content["texts"])
    )


def answer() -> None:
    """Nothing; people judged each drawn pair."""
    waiting = Target.objects.filter(pk__in=Sample.objects.values("target"), labels=None)
    record(
        NewLabel(
            target.pk,
            {"ratings": {"preferred": [float(is_first_better(target.content))]}},
            "crowd",
            "ratings",
            1,
            f"q:{target.pk}",
        )
        for target in waiting
    )


def preferred() -> dict[str, str]:
    """Input -> the text that people preferred, of the pairs that they judged."""
    contents = [label.target.content for label in Label.objects.exclude(value={})]
    return {one["input"]: one["texts"][0 if is_first_better(one) else 1] for one in contents}


def wins(text_of: Mapping[str, str], *others: Mapping[str, str]) -> float:
    """The truth: how often a run's texts are preferred to those of others, a pair of texts once."""
    pairs = {(key, tuple(sorted((text_of[key], other[key])))) for key in INPUTS for other in others}
    return float(
        np.mean(
            [
                0.5
                if two[0] == two[1]
                else is_first_better({"texts": list(two)}) == (text_of[key] == two[0])
                for key, two in pairs
            ]
        )
    )


def printed(row: Submission) -> Estimate:
    """What is printed for a run."""
    last = row.track.evaluations.order_by("-number").first()
    return Estimate.objects.get(
        evaluation=last, submission=row, quantity="mean", method="centred", slice=""
    )


@pytest.mark.parametrize("words", ["theirs", "its own on every other"])
def test_who_takes_the_text_that_was_preferred_is_printed_near_the_truth(
    track: Track, words: str
) -> None:
    first, second = upload(track, "one", ONE), upload(track, "two", OTHER)
    on_board(first, second)
    toss = np.random.default_rng(3).random(len(INPUTS)) < 0.5
    text_of = {key: ONE[key] if up else OTHER[key] for key, up in zip(INPUTS, toss, strict=True)}
    if words != "theirs":
        text_of |= {key: f"{key} three" for key in INPUTS[::2]}
    known = preferred()
    text_of |= known
    row = upload(track, "third", text_of)
    on_board(row)
    third = printed(row)
    now = printed(first)
    assert third.low95 <= wins(text_of, ONE, OTHER) <= third.high95
    assert now.low95 <= wins(ONE, OTHER, text_of) <= now.high95 < now.low95 + 0.5
    assert set(row.leak_tests.filter(seen=True).values_list("earlier", flat=True)) == set(
        earlier(row)
    )
    is_same = row.leak_tests.filter(seen=True, channel=LeakTest.Channel.SAME).exists()
    assert is_same == (words == "theirs"), "which of them it takes no draw tells, how many does"


def test_what_is_asked_of_a_text_of_its_own_counts_for_whom_it_meets(
    track: Track, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two inputs alone have a text that an earlier run wrote."""
    first, second = upload(track, "one", ONE), upload(track, "two", OTHER)
    on_board(first, second)
    text_of = {key: f"{key} three" for key in INPUTS} | {key: ONE[key] for key in INPUTS[:2]}
    row = upload(track, "third", text_of)
    on_board(row)
    assert row.leak_tests.filter(channel=LeakTest.Channel.SAME, seen=True).count() == 2
    data = read(track)
    saw = data.disclosed[data.systems.index(row.pk)]
    assert saw.known.sum() == 2, "two pairs that were there"
    monkeypatch.setattr(Decision, "earlier", lambda _: data.systems)
    with CaptureQueriesContext(connection) as asked:
        disclosed(data.pool)
    assert sum("min(b.drawn_at)" in one["sql"] for one in asked) == 1, "once for all runs"
    for other, truth in ((row, wins(text_of, ONE, OTHER)), (first, wins(ONE, OTHER, text_of))):
        found = printed(other)
        assert found.low95 <= truth <= found.high95
        assert found.high80 - found.low80 < 0.3


def test_whose_draft_an_earlier_run_met_repeats_nothing(track: Track) -> None:
    first, second = upload(track, "one", ONE), upload(track, "two", OTHER)
    on_board(first)
    assert preferred(), "its texts were judged before it was confirmed"
    on_board(second)
    assert not second.leak_tests.filter(seen=True).exists() and not earlier(second)
