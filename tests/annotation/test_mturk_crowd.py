"""Thirty HITs from launch to paid, judged by programs that use the marketplace's pages and ours
like workers: the labels, payments and bonuses, our ledger and the endpoint's account agree to the
cent.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from annotation_world import make_neighbour, make_submission, make_target
from django.db import transaction
from mturk_world import (
    Turk,
    check_answers,
    check_bonuses,
    check_books,
    check_labels,
    check_money,
    each_does_one,
    rounds,
)

from annotation.budget.check_books import check_books as disagreements
from annotation.hits import publish
from annotation.marketplace import books
from annotation.models import HIT, Assignment, Bonus, Payment, Question, Response
from annotation.quality.warn import set_exclude_for
from annotation.questions import ask
from annotation.workers.models import Consent, Intake, TutorialRun
from kbpo.instances.models import Label
from kbpo.money.models import Ledger
from kbpo.money.spend import balance
from kbpo.tracks.models import Track
from rehearsal.market_workers import MarketCrowd

pytestmark = [pytest.mark.soak, pytest.mark.django_db, pytest.mark.usefixtures("untaught")]
HITS, TWICE, WORKERS, PLACES = 30, 3, 5, 3


@dataclass(frozen=True)
class Studied:
    """What is true of any two mentions here."""

    subject_canonical: tuple[int, int] = (0, 3)
    object_canonical: tuple[int, int] = (0, 3)
    holds: tuple[tuple[str, str], ...] = (("per:schools_attended", ">"),)


def test_thirty_hits_go_from_launch_to_paid_and_all_books_agree_to_the_cent(
    turk: Turk, track: Track, live_server: Any, settings: Any
) -> None:
    settings.SITE_URL = live_server.url
    settings.MTURK_TIMEOUT = Decimal("5")
    set_exclude_for(track, ["majority", "gold"], None, "Programs need no time to read")
    Intake.objects.create(tutorial_reward=Decimal("0.75"))
    targets = [make_target(track, number, (number - 0.5) / HITS) for number in range(1, HITS + 1)]
    targets += [
        make_neighbour(track, one) for one in targets[:TWICE]
    ]  # three HITs hold two questions
    submission = make_submission(track, targets, money="100.00")
    ask.tick()
    publish.tick()
    assert (HIT.objects.count(), len(turk.hits())) == (HITS, HITS)

    names = [f"W{number}" for number in range(WORKERS)]
    crowd = MarketCrowd(
        turk.url, live_server.url, names, lambda *_: Studied(), accuracy=[1.0, 1.0, 1.0, 1.0, 0.7]
    )
    each_does_one(crowd)
    work = crowd.work(at_most=300)
    assert work.errors == [] and work.answers == PLACES * len(targets)
    rounds(20)

    assert Question.objects.counts() == {"settled": len(targets)}
    assert HIT.objects.counts() == {"disposed": HITS}, "everything is decided, and put away there"
    assert {row["disposed"] for row in turk.rows("SELECT disposed FROM hit")} == {1}
    labels = Label.objects.filter(target__in=targets, source="crowd")
    assert Counter(labels.values_list("target", flat=True)) == Counter(one.pk for one in targets)
    assert set(labels.values_list("n", flat=True)) == {PLACES}
    assert (
        sum("per:schools_attended>" in label.value["holds"] for label in labels) >= len(targets) - 3
    )

    # Each answer 5 cents and a cent of fee for each question; each tutorial 75 cents and 15 of fee,
    # once.
    assert (
        Payment.objects.count() == Assignment.objects.filter(status="paid").count() == PLACES * HITS
    )
    assert (
        Bonus.objects.count()
        == TutorialRun.objects.filter(passed=True).count()
        == Consent.objects.count()
    )
    judging, lessons = (
        Decimal("0.06") * PLACES * len(targets),
        Decimal("0.90") * Bonus.objects.count(),
    )
    spent = (
        Ledger.objects.filter(kind="spend").exclude(state="failed").values_list("amount", flat=True)
    )
    assert sum(spent, Decimal(0)) == judging + lessons
    assert balance(purpose=submission.purpose).spent == judging

    check_books(turk)
    check_labels(turk)
    assert check_answers(turk) == len(targets)
    check_bonuses(turk)
    check_money(turk)
    held = books.holdings("mturk")
    assert held.row.differences == [] and not held.difference and held.paid == judging + lessons
    assert disagreements() == []
    the_check_sees_what_is_wrong(turk)


def the_check_sees_what_is_wrong(turk: Turk) -> None:
    """Of an answer that was lost, changed, counted twice, or given twice by somebody, and of a HIT
    that is there twice, each alone.
    """
    label = Label.objects.filter(origin__startswith="question:", target__kind="pair").earliest("pk")
    answer = Response.objects.filter(target=label.target, criterion="relation").earliest("pk")
    wrong_in_ours = [
        ("is in its label|are in its label", lambda: Label.objects.filter(pk=label.pk).update(n=4)),
        (
            "has the votes",
            lambda: Label.objects.filter(pk=label.pk).update(
                value=label.value | {"votes": {"x>": 3}}
            ),
        ),
        ("there is no label", lambda: label.delete()),
        ("we have read", lambda: answer.delete()),
    ]
    for says, spoil in wrong_in_ours:
        with transaction.atomic():
            spoil()
            with pytest.raises(AssertionError, match=says):
                check_answers(turk)
            transaction.set_rollback(True)
    first, second = turk.rows("SELECT id, annotation FROM hit ORDER BY number LIMIT 2")
    with turk.store.begin() as books:
        books.run("UPDATE assignment SET worker = 'W9' WHERE hit = ?", first["id"])
    with pytest.raises(AssertionError, match="somebody answered it twice"):
        check_answers(turk)
    with turk.store.begin() as books:
        books.run("UPDATE hit SET annotation = ? WHERE id = ?", first["annotation"], second["id"])
    with pytest.raises(AssertionError, match="a HIT is there twice"):
        check_answers(turk)
