"""A conditional price, to the last cent: promised at its most, spent as it was earned, the rest
back; on our own pages, and on a marketplace as base and bonus.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import numpy as np
import pytest
from django.test import Client
from django.utils import timezone
from mturk_world import Turk, bury, check_books, collect_and_reconcile, due, rounds

from annotation.budget import check_books as books
from annotation.budget import give_back
from annotation.budget.cents import money_by_state
from annotation.budget.promises import committed_money
from annotation.hits import publish
from annotation.hits.held import count_answers_today
from annotation.labels import reject, settle
from annotation.marketplace.books import compare_books
from annotation.models import Assignment, Bonus, Payment, Question, Response, Worker
from annotation.questions import ask
from annotation.workers import standing
from kbpo import clock
from kbpo.accounts.models import Team, User
from kbpo.corpus.models import Corpus
from kbpo.instances.models import Label, Target
from kbpo.instances.targets import independent_random_number, random_number_of_target
from kbpo.money.models import Ledger, Price
from kbpo.money.spend import balance, reserve_money
from kbpo.sampling.models import Sample, SampleBatch, SamplingDistribution
from kbpo.sampling.open_track import Money, create_track, open_track
from kbpo.submissions.models import Submission
from kbpo.tracks.base import QuestionDraft
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.tracks.texts.shipped import GenerationTrack
from kbpo.tracks.texts.store import Claim, store_text_claims

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def one_person_a_text(monkeypatch: pytest.MonkeyPatch, toy_kind: object, settings: Any) -> None:
    """The real kinds, without a second person by chance, and a HIT for each text."""
    settings.MTURK_QUESTIONS_PER_HIT = 1
    monkeypatch.setattr("annotation.questions.ask.kind_of", kind_of)
    monkeypatch.setattr(GenerationTrack, "second_share", Decimal(0))


TEXTS = ("A good text.", "A text that have a slip.", "Another good text.")
BEST = {"fluency": "3", "redundancy": "3", "overall": "3"}
BELOW = BEST | {"fluency": "2", "edit": "A text that has a slip, mended."}


def a_track(platform: str, fee: str) -> tuple[Track, Submission]:
    """A track of texts at $0.15 and $0.25 more, and a submission of three texts,
    one person each.
    """
    corpus = Corpus.objects.create(name="Articles", slug="articles", schema={})
    money = Money(budget=Decimal(100), fee_rate=Decimal(fee))
    made = create_track(
        corpus,
        "Summaries",
        kind="generation",
        platform=platform,
        workers_per_question=1,
        money=money,
    )
    track = open_track(made)
    submission = Submission.objects.create(
        track=track,
        team=Team.objects.create(name="one", slug="one"),
        name="run",
        status="judging",
        file="x",
        file_name="x",
        file_size=1,
        file_digest="x",
        confirmed_at=timezone.now(),
        sampled_at=timezone.now(),
    )
    claims = [Claim(text, at, {"input": str(at), "text": text}) for at, text in enumerate(TEXTS)]
    n = store_text_claims(submission.pk, corpus, "output", claims)
    distribution = SamplingDistribution.objects.create(
        submission=submission, kind="instance", total=n, n=n
    )
    batch = SampleBatch.objects.create(
        submission=submission, distribution=distribution, design="iid", seed=0, size=n
    )
    Sample.objects.bulk_create(
        Sample(batch=batch, target=one, probability=1.0, multiplicity=1)
        for one in Target.objects.filter(kind="output")
    )
    price = Price.objects.get(track=track)
    purpose = submission.purpose
    reserve_money(track, submission.team, purpose, n * price.per_answer, key=f"{purpose}:reserve")
    ask.tick()
    publish.tick()
    return track, submission


def answer_of(text: str) -> dict[str, str]:
    return BELOW if "slip" in text else BEST


def judge(client: Client) -> int:
    """How many questions one annotator answered on our own pages."""
    for done in range(10):
        address = client.get("/annotate/next/")["Location"]
        if address == "/annotate/":
            return done
        page = client.get(address)
        sent = client.post(address, answer_of(page.content.decode()))
        assert sent.status_code == 302, sent.content.decode()
    raise AssertionError("There is no end of questions.")


def test_our_own_pages_pay_what_was_earned_and_the_rest_returns(ada: Client) -> None:
    track, submission = a_track("pool", "0")
    assert committed_money(submission.purpose) == Decimal("1.20"), "promised at its most"
    assert "$0.25" in ada.get(ada.get("/annotate/next/")["Location"]).content.decode()
    assert judge(ada) == 3
    worker = Worker.objects.get(user__username="ada")
    assert count_answers_today(worker).earned == Decimal("0.70"), "what was sent counts at once"
    settle.tick()
    assert sorted(Payment.objects.values_list("amount", flat=True)) == [
        Decimal("0.15"),
        Decimal("0.15"),
        Decimal("0.40"),
    ]
    assert not Bonus.objects.exists()
    assert balance(purpose=submission.purpose).open == Decimal("0.50")
    submission.move("scored")
    assert give_back.release_unneeded_money(submission)
    sums = balance(purpose=submission.purpose)
    assert (sums.reserved, sums.spent, sums.released) == tuple(
        map(Decimal, ("1.20", "0.70", "0.50"))
    )
    assert books.check_books() == []
    assert sum(one.amount for one in money_by_state(track.pk)) == Decimal("1.20")
    Payment.objects.filter(amount=Decimal("0.40")).update(amount=Decimal("0.15"))
    assert {one.check for one in books.check_books()} == {"wrong_amount"}
    edits = Label.objects.order_by("pk").values_list("value__ratings__edit", flat=True)
    assert sorted(bool(edit) for (edit,) in edits) == [False, False, True]


def test_a_marketplace_pays_the_base_and_a_bonus_for_what_was_mended(turk: Turk) -> None:
    track, submission = a_track("mturk", "0.2")
    assert committed_money(submission.purpose) == Decimal("1.44"), "3 × ($0.18 and $0.30)"
    do_all(turk)
    rounds()
    assert Assignment.objects.counts() == {"paid": 3}
    assert set(Payment.objects.values_list("amount", "status")) == {(Decimal("0.15"), "paid")}
    bonus = Bonus.objects.get()
    assert (bonus.amount, bonus.fee, bonus.status) == (Decimal("0.25"), Decimal("0.05"), "paid")
    assert turk.rows("SELECT cents, reason FROM bonus")[0]["cents"] == 25
    assert "corrected" in turk.rows("SELECT reason FROM bonus")[0]["reason"]
    sums = balance(purpose=submission.purpose)
    assert (sums.spent, sums.open) == (Decimal("0.84"), Decimal("0.60"))
    submission.move("scored")
    give_back.release_unneeded_money(submission)
    assert balance(purpose=submission.purpose).open == 0
    assert books.check_books() == []
    check_books(turk)
    held = compare_books("mturk")
    assert held.balance_gap == 0 and held.paid == Decimal("0.84")
    states = {(one.state, one.amount) for one in money_by_state(track.pk)}
    assert ("paid", Decimal("0.70")) in states and ("fee", Decimal("0.14")) in states


def do_all(turk: Turk) -> None:
    for hit in turk.hits():
        text = Question.objects.get(hits__external_id=hit).payload["text"]
        turk.do("W1", hit, answer_of(text))


@pytest.mark.parametrize("kind", ["error_after", pytest.param("error", marks=pytest.mark.soak)])
def test_a_bonus_of_unknown_outcome_is_paid_once(turk: Turk, kind: str) -> None:
    _, submission = a_track("mturk", "0.2")
    do_all(turk)
    turk.fault("SendBonus", kind)
    for _ in range(2):
        bury()
        rounds()
    assert turk.rows("SELECT count(*) AS n FROM bonus")[0]["n"] == 1
    assert Bonus.objects.get().status == "paid"
    assert balance(purpose=submission.purpose).spent == Decimal("0.84")
    assert books.check_books() == []


def settle_all() -> None:
    due()
    collect_and_reconcile()
    settle.tick()


def test_what_a_rejected_answer_earned_is_withheld_and_owed_again(
    turk: Turk, annotator: Any
) -> None:
    a_track("mturk", "0.2")
    do_all(turk)
    settle_all()
    admin: User = annotator("chief")
    mended = Assignment.objects.get(extra__gt=0)
    reject.reject_answer(mended, admin, "The mended text is an advertisement for shoes.")
    assert Bonus.objects.get().status == "withheld"
    assert Payment.objects.get(assignment=mended).status == "withheld"
    mended.refresh_from_db()
    reject.undo_rejection(mended, admin, "It was about a shoe shop.")
    assert Bonus.objects.get().status == "owed"
    rounds()
    assert Bonus.objects.get().status == "paid"
    assert turk.rows("SELECT count(*) AS n FROM bonus")[0]["n"] == 1


class Killed(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("before", [True, False])
def test_a_kill_between_price_and_bonus_leaves_all_or_nothing(
    turk: Turk, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    _, submission = a_track("mturk", "0.2")
    do_all(turk)
    whole = Bonus.objects.bulk_create

    def dies(*args: Any, **how: Any) -> None:
        if not before:
            whole(*args, **how)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Bonus.objects, "bulk_create", dies)
        with pytest.raises(Killed):
            settle_all()
    assert not Bonus.objects.exists() and not Ledger.objects.filter(kind="spend").exists()
    settle_all()
    assert Bonus.objects.count() == 1 and Response.objects.filter(criterion="edit").count() == 3
    assert balance(purpose=submission.purpose).spent == Decimal("0.84")
    assert books.check_books() == []


def test_one_person_gives_at_most_a_quarter_of_a_runs_ratings_while_others_are_there(
    clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, bo, _ = clients
    monkeypatch.setitem(globals(), "TEXTS", tuple(f"Text {at}." for at in range(12)))
    a_track("pool", "0")
    assert bo.get("/annotate/next/")["Location"] != "/annotate/", "he has one in hand"
    assert judge(ada) == 3
    Worker.objects.filter(user__username="bo").update(last_seen_at=clock.now() - standing.HERE)
    assert judge(ada) == 8, "nobody else is there"


def test_one_in_twenty_is_asked_twice_at_least_twenty_and_at_most_forty_on_a_track(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(GenerationTrack, "second_share", None)
    kind = GenerationTrack(Track())
    assert [kind.count_second_opinions(new) for new in (5, 60, 500, 2000)] == [5, 20, 25, 40]
    assert kind.count_second_opinions(100, before=20) == 5
    assert kind.count_second_opinions(100, before=12) == 8
    assert kind.count_second_opinions(400, before=30) == 10
    assert kind.count_second_opinions(400, before=40) == 0


def test_a_second_person_is_asked_by_a_number_that_is_independent_of_the_draw(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys = [uuid5(NAMESPACE_URL, str(n)) for n in range(4000)]
    numbers = [independent_random_number("key", key) for key in keys]
    us = [random_number_of_target("key", key) for key in keys]
    assert abs(np.corrcoef(us, numbers)[0, 1]) < 4 / 4000**0.5
    track, _ = a_track("pool", "0")
    monkeypatch.setattr(GenerationTrack, "second_share", Decimal("0.3"))
    targets = Target.objects.filter(corpus=track.corpus)
    drafts = [QuestionDraft(target.pk, "language_quality", {}, []) for target in targets]
    lowest = min(
        targets, key=lambda target: independent_random_number(track.corpus.hash_key, target.key)
    )
    assert len(drafts) == 3 and ask._targets_for_second_opinion(track, drafts) == {lowest.pk}
