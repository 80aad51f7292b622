"""Answers that are excluded leave settled labels too, and come back; more are asked for where too
few are left.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from annotation_world import PARTS, answer_all, make_submission
from django.test import Client
from django.utils import timezone
from documents_world import answer_to, order, place
from exclusion_world import BAD, FLAG, NO, YES, holds, judged, worker

from annotation.budget import promises
from annotation.hits import ask_again, publish
from annotation.labels import exclude, recount, reject, revise, settle
from annotation.labels.recount import Again
from annotation.models import HIT, Comparison, Question, Response, Signal, Warned, Worker
from annotation.quality import signals
from annotation.questions import ask, read_documents
from annotation.workers.worker import worker_of
from kbpo.accounts.models import Audit, User
from kbpo.corpus.models import Predicate
from kbpo.evaluation.due import state_of
from kbpo.instances.merge import merged, values_inside, values_of
from kbpo.instances.models import Instance, Label, Target
from kbpo.instances.record import NewLabel, record
from kbpo.money.spend import release
from kbpo.sampling.open_track import close_track
from kbpo.submissions.models import Submission
from kbpo.tracks.kbp.facts import read_facts
from kbpo.tracks.kbp.merge import together
from kbpo.tracks.models import Track
from kbpo.web.desk.log import NOBODY, entries
from tests.conftest import Toy

pytestmark = pytest.mark.django_db


@pytest.fixture
def of_two(track: Track, targets: list[Target], clients: list[Client]) -> Submission:
    """Six questions to two people: ada says yes, bo says no, so that nothing holds."""
    Track.objects.filter(pk=track.pk).update(workers_per_question=2)
    track.refresh_from_db()
    submission = make_submission(track, targets)
    ask.tick()
    publish.tick()
    judged(clients, YES, NO)
    return submission


def without_money(submission: Submission) -> None:
    release(submission.track, submission.purpose, key="all")


def test_a_bad_workers_answers_leave_settled_labels_which_flip(
    of_two: Submission, admin: User
) -> None:
    track, before = of_two.track, Label.objects.count()
    track.is_study, track.owner = True, of_two.team
    track.save()
    stale, kept = state_of(track), list(Label.objects.order_by("pk").values_list("value", "origin"))
    assert holds(track) == {()}
    done = exclude.exclude(worker("bo"), BAD, admin)
    assert done == exclude.LeftOut(18, Again(changed=6, asked=6))
    assert holds(track) == {(PARTS[0],)}
    label = Label.objects.filter(target__kind="pair").order_by("-pk")[0]
    assert (label.n, label.disagreement, label.value["votes"]) == (1, 0.0, {PARTS[0]: 1})
    assert state_of(track) != stale, "the board is scored again"
    assert list(Label.objects.order_by("pk").values_list("value", "origin")[:before]) == kept, (
        "nothing was rewritten"
    )
    assert Response.objects.count() == 36
    entry = Audit.objects.get(what="leave out")
    assert (entry.who, entry.why, entry.after) == (
        admin,
        BAD,
        "18 judgments; 6 labels changed, 6 questions asked again",
    )
    about = Audit.objects.get(what="add up again")
    assert (about.who, about.track, about.after) == (
        admin,
        track.slug,
        "6 labels changed, 6 questions asked again",
    )


def test_signals_reach_settled_labels_like_an_admin_does(
    of_two: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exclude, "LEAST_LEFT", 1)
    beyond = exclude.Flag("gold", 9, 10)
    monkeypatch.setattr(exclude, "_excluding", lambda workers: {worker("bo").pk: [beyond]})
    answer = worker("bo").assignments.earliest("pk")
    Signal.objects.create(assignment=answer, worker=answer.worker, kind="gold_failed")
    Warned.objects.create(worker=worker("bo"), kind="gold", against=2)
    assert exclude.review() == 1
    assert holds(of_two.track) == {(PARTS[0],)}


def test_readmission_brings_the_answers_back(of_two: Submission, admin: User) -> None:
    exclude.exclude(worker("bo"), BAD, admin)
    assert exclude.reinstate(worker("bo"), admin, "They were right.") == exclude.LeftOut(
        18, Again(back=6)
    )
    settle.tick()
    assert holds(of_two.track) == {()}
    said = "18 judgments; 0 labels changed, 6 questions settled next with what counts again"
    assert Audit.objects.get(what="reinstate").after == said
    exclude.exclude(worker("bo"), BAD, admin)
    assert holds(of_two.track) == {(PARTS[0],)}
    assert max(Label.objects.values_list("origin", flat=True)).endswith("/again-3")


def test_nothing_is_done_twice(of_two: Submission) -> None:
    exclude.exclude(worker("bo"), BAD)
    n = Label.objects.count()
    assert exclude.exclude(worker("bo"), BAD) == exclude.LeftOut(0, Again())
    assert (
        recount.recount(list(Question.objects.select_related("target", "track")), "To be sure")
        == Again()
    )
    assert Label.objects.count() == n


def test_whom_signals_exclude_counts_once_and_the_log_tells_what_the_service_did(
    of_two: Submission, admin: User
) -> None:
    bad = worker("bo")
    for _ in range(2):  # again for what was read afterwards
        exclude.exclude(bad, "Signals say so.")
    exclude.exclude(worker("ada"), "An admin says so.", admin)
    assert exclude.excluded_since(timezone.now() - timedelta(days=7)) == 1
    told = {row["why_"] for row in entries(book="states", who=NOBODY)}
    assert "Signals say so." in told and "An admin says so." not in told
    assert {row["who_"] for row in entries(who=admin.username)} == {admin.username}


def test_killed_on_the_way_it_has_done_nothing(
    of_two: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = Label.objects.count()
    with monkeypatch.context() as killed:
        killed.setattr(recount, "ask_again", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            exclude.exclude(worker("bo"), BAD)
    assert worker("bo").excluded_at is None and Label.objects.count() == n
    assert not Response.objects.filter(counts=False).exists() and holds(of_two.track) == {()}
    assert not Audit.objects.filter(what__in=["leave out", "add up again"]).exists()
    exclude.exclude(worker("bo"), BAD)
    assert holds(of_two.track) == {(PARTS[0],)}


def test_what_an_expert_said_stays(of_two: Submission) -> None:
    target = Question.objects.order_by("pk")[0].target_id
    record(
        [NewLabel(target, {"shown": PARTS, "holds": [PARTS[1]]}, "expert", "expert", 1, "expert:1")]
    )
    exclude.exclude(worker("bo"), BAD)
    assert merged(Label.objects.filter(target=target), together)["holds"] == [PARTS[1]]
    assert holds(of_two.track) == {(PARTS[0],), (PARTS[1],)}


def test_what_another_question_said_later_is_not_hidden(of_two: Submission) -> None:
    mention = Target.objects.filter(kind="mention", labels__isnull=False).order_by("pk")[0]
    record(
        [
            NewLabel(
                mention.pk,
                {"canonical": [9, 12], "type": "PER"},
                "crowd",
                "majority",
                3,
                "question:999999",
            )
        ]
    )
    exclude.exclude(worker("bo"), BAD)
    assert Label.objects.filter(target=mention, again__isnull=False).exists()
    assert merged(Label.objects.filter(target=mention), together)["canonical"] == [9, 12]


def test_where_people_are_divided_then_one_more_decides(
    published: Submission, clients: list[Client], annotator: Callable[[str], User]
) -> None:
    judged(clients, YES, NO, YES)
    assert exclude.exclude(worker("cy"), BAD).settled == Again(asked=6)
    assert holds(published.track) == {(PARTS[0],)}, "until somebody answers"
    publish.tick()
    assert promises.committed(published.purpose) == 6 * Decimal("0.06")
    assert HIT.objects.filter(status="open", max_assignments=1).count() == 6
    dana = Client()
    dana.force_login(annotator("dana"))
    assert answer_all(clients[0], NO) == 0, "nobody is asked twice"
    assert answer_all(dana, NO) == 6
    settle.tick()
    assert Question.objects.counts() == {"settled": 6} and holds(published.track) == {()}
    label = Label.objects.filter(target__kind="pair").order_by("-pk")[0]
    assert (label.n, label.method) == (3, "majority") and label.origin.endswith("/again-1")


def test_without_an_answer_left_as_many_are_asked_as_the_track_asks(
    published: Submission, clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(clients, YES, YES, YES)
    with monkeypatch.context() as poor:
        poor.setattr(ask_again, "_places", lambda *_: 0)
        for name in ("ada", "bo"):
            exclude.exclude(worker(name), BAD)
    assert exclude.exclude(worker("cy"), BAD).settled == Again(asked=6)
    publish.tick()
    assert set(HIT.objects.filter(status="open").values_list("max_assignments", flat=True)) == {3}
    assert set(Question.objects.values_list("answers_wanted", flat=True)) == {6}


@pytest.mark.parametrize("why", ["no money", "closed", "some money"])
def test_where_nobody_can_be_asked_the_label_stays_and_is_counted(
    why: str, published: Submission, clients: list[Client]
) -> None:
    judged(clients, YES, NO, YES)
    left = {"no money": "0.00", "closed": "9.00", "some money": "0.13"}[why]
    release(published.track, published.purpose, key="all", keep=Decimal(left))
    if why == "closed":
        Track.objects.update(status="closed")
    n = Label.objects.count()
    asked = 2 if why == "some money" else 0
    done = exclude.exclude(worker("cy"), BAD)
    assert done.settled == Again(asked=asked, stayed=6 - asked) and Label.objects.count() == n
    assert holds(published.track) == {(PARTS[0],)}
    assert f"{6 - asked} stay as before" in str(done)
    again_ = exclude.exclude(worker("bo"), BAD)
    assert again_.settled == Again(changed=0), "ada alone says what all had said, with other votes"
    assert Question.objects.filter(status="published").count() == asked


def test_a_question_that_could_not_be_answered_says_nothing_any_more(
    published: Submission, clients: list[Client]
) -> None:
    judged(clients, FLAG, YES, YES)
    without_money(published)
    exclude.exclude(worker("bo"), BAD)
    assert holds(published.track) == {(PARTS[0],)}, "one says so, one could not read it"
    exclude.exclude(worker("cy"), BAD)
    targets = set(Question.objects.values_list("target", flat=True))
    assert [(value, unanswered) for _, value, unanswered in values_of(targets, together)] == [
        ({}, True)
    ] * 6
    mentions = {
        pk
        for (pk,) in Target.objects.filter(kind="mention", labels__isnull=False).values_list("pk")
    }
    assert all(not value for _, value, _ in values_of(mentions, together))
    exclude.reinstate(worker("cy"))
    exclude.reinstate(worker("bo"))
    assert [
        (value["holds"], unanswered) for _, value, unanswered in values_of(targets, together)
    ] == [([PARTS[0]], False)] * 6
    again = [value for _, value, _ in values_of(mentions, together)]
    assert all(value.get("canonical") or value.get("elsewhere") for value in again)


def test_a_rejected_answer_leaves_settled_labels_too_until_that_is_undone(
    of_two: Submission, admin: User
) -> None:
    answer = worker("bo").assignments.order_by("pk")[0]
    target = answer.hit.questions.get().target_id
    reject.reject(answer, admin, "The same button, six times in two seconds.")
    assert merged(Label.objects.filter(target=target), together)["holds"] == [PARTS[0]]
    answer.refresh_from_db()
    reject.undo(answer, admin, "The text was ambiguous.")
    settle.tick()
    assert merged(Label.objects.filter(target=target), together)["holds"] == []


def test_what_everybody_may_see_is_not_hidden_again(of_two: Submission) -> None:
    Label.objects.update(public_at=timezone.now() - timedelta(days=1))
    close_track(of_two.track)
    exclude.exclude(worker("bo"), BAD)
    targets = set(Question.objects.values_list("target", flat=True))
    assert {tuple(value["holds"]) for _, value, _ in values_of(targets, together, public=True)} == {
        (PARTS[0],)
    }
    assert Label.objects.filter(
        again__isnull=False, public_at__gt=timezone.now() - timedelta(hours=1)
    ).exists()


@pytest.mark.soak
def test_a_track_with_a_model_is_fitted_anew_without_them(
    published: Submission, clients: list[Client]
) -> None:
    judged(clients, NO, YES, YES)
    revise.switch(published.track, revise.MODEL, None, "To try")
    without_money(published)
    fit = revise.revision(published.track, revise.MODEL, 8).model
    assert str(worker("cy").pk) in fit["relation"]["confusion"]
    exclude.exclude(worker("cy"), BAD)
    fit = revise.revision(published.track, revise.MODEL, 8).model
    assert set(fit["relation"]["confusion"]) == {str(worker(name).pk) for name in ("ada", "bo")}
    exclude.exclude(worker("bo"), BAD)
    assert holds(published.track) == {()}, "ada alone is left"
    assert revise.revision(published.track, revise.MODEL, 9).flips == []


def test_nobody_is_flagged_for_contradicting_those_who_are_excluded(
    published: Submission, clients: list[Client]
) -> None:
    judged(clients, YES, NO, NO)
    ada = worker("ada")

    def against() -> tuple[int, int]:
        flag = next(one for one in signals.flags(ada) if one.kind == "majority")
        return flag.against, Signal.objects.filter(worker=ada, kind="against_majority").count()

    assert against() == (6, 6)
    since = set(Comparison.objects.values_list("pk", "created_at"))
    exclude.exclude(worker("bo"), BAD)
    assert against() == (0, 0)
    exclude.reinstate(worker("bo"))
    settle.tick()
    assert against() == (6, 6) and set(Comparison.objects.values_list("pk", "created_at")) == since


def test_flags_are_counted_anew_after_each_who_is_excluded(
    published: Submission, clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ada is right, and bo and cy err alike: where they are the majority she is beyond the
    limit.
    """
    monkeypatch.setitem(signals.LIMITS, "majority", signals.Limit(4, 0.2))
    judged(clients, YES, NO, NO)
    without_money(published)
    crowd = [
        Worker(platform="pool", handle=f"other{number}", last_seen_at=timezone.now())
        for number in range(9)
    ]
    Worker.objects.bulk_create(crowd)
    for name in ("bo", "cy"):  # known by gold, and worse than ada
        for answer in worker(name).assignments.all():
            Comparison.objects.create(assignment=answer, kind="gold", against=True)
            Signal.objects.create(assignment=answer, worker=answer.worker, kind="gold_failed")
    Comparison.objects.filter(assignment=worker("ada").assignments.order_by("pk")[0]).update(
        against=False
    )
    assert signals.flags(worker("ada"))[0] == signals.Flag("majority", 5, 6)
    for name in ("ada", "bo", "cy"):
        Warned.objects.create(worker=worker(name), kind="gold", against=2)
        Warned.objects.create(worker=worker(name), kind="majority", against=2)
    monkeypatch.setattr(exclude, "MOST_A_DAY", 1.0)
    monkeypatch.setattr(exclude, "unreplaced", lambda worker: 0)
    assert exclude.review() == 2
    assert worker("ada").excluded_at is None


# -- Documents that were read whole
# ------------------------------------------------------------------------------------


WRONG = ("Mara Lindt", "per:place_of_residence", "Bergen")


def with_a_mistake(question: Question) -> dict[str, str]:
    """The true answer about a document's pairs, and a relation that the text does not tell."""
    raw, payload = answer_to(question), question.payload
    said = json.loads(raw["pairs"])
    for number, pair in enumerate(payload["pairs"]):
        if {payload["mentions"][pair[side]]["gloss"] for side in ("a", "b")} == {
            WRONG[0],
            WRONG[2],
        }:
            said[str(number)] = [*said[str(number)], f"{WRONG[1]}>"]
    return raw | {"pairs": json.dumps(said)}


def read_by(
    toy: Toy, liars: tuple[str, ...], lie: Callable[[Question], dict[str, str]], interface: str
) -> None:
    """Ada, Bo and Cy read what is ordered; those who lie do so about one interface."""
    for _ in range(2):
        for name in ("Ada", "Bo", "Cy"):
            client = Client()
            client.force_login(toy.users[name])
            while (address := client.get("/annotate/next/")["Location"]) != "/annotate/":
                question = Question.objects.get(hits__assignments__token=address.split("/")[2])
                lies = name in liars and question.interface == interface
                assert (
                    client.post(address, lie(question) if lies else answer_to(question)).status_code
                    == 302
                )
        for step in (settle, read_documents, publish):
            step.tick()


def marked(toy: Toy) -> set[str]:
    """The predicates that readers marked in d2 and that count."""
    documents = [toy.documents["d2"].pk]
    facts = read_facts(toy.track, np.array([], dtype=np.int64), [], documents)
    return set(
        Predicate.objects.filter(pk__in=facts.stratum.tolist()).values_list("name", flat=True)
    )


@pytest.mark.soak
def test_a_mark_that_most_made_no_more_is_taken_back_and_comes_back(toy: Toy) -> None:
    order(toy.track, 4)
    read_by(toy, ("Bo", "Cy"), with_a_mistake, "relations_exhaustive")
    assert WRONG[1] in marked(toy)
    cy = worker_of(toy.users["Cy"])
    done = exclude.exclude(cy, BAD).settled
    assert (done.changed, done.asked, done.stayed) == (1, 0, 0)
    assert marked(toy) == {"per:employee_or_member_of", "per:parents"}
    pair = Target.objects.get(labels__method="taken_back")
    assert {unanswered for _, _, unanswered in values_of({pair.pk}, together)} == {False}, (
        "nobody was asked without an answer"
    )
    exclude.reinstate(cy)
    assert WRONG[1] in marked(toy)


def test_what_most_mark_now_is_an_instance(toy: Toy) -> None:
    order(toy.track, 4)
    read_by(toy, ("Cy",), with_a_mistake, "relations_exhaustive")
    n = Instance.objects.count()
    exclude.exclude(worker_of(toy.users["Ada"]), BAD)
    assert WRONG[1] not in marked(toy), "one of two"
    exclude.exclude(worker_of(toy.users["Bo"]), BAD)
    assert WRONG[1] in marked(toy) and Instance.objects.count() == n + 1
    last = exclude.exclude(worker_of(toy.users["Cy"]), BAD).settled
    assert last.stayed == 8 and WRONG[1] in marked(toy), (
        "a document that nobody is left of stays as it was read"
    )


@pytest.mark.soak
def test_names_of_a_document_are_reaggregated_but_those_that_were_read_stay(toy: Toy) -> None:

    def alone(question: Question) -> dict[str, str]:
        """Every name stands for itself, and Halden is not marked."""
        raw, halden = answer_to(question), "Halden"
        rows = [one | {"canonical": one["span"]} for one in json.loads(raw["mentions"])]
        text = question.target.document.text
        return raw | {
            "mentions": json.dumps([one for one in rows if text[slice(*one["span"])] != halden])
        }

    order(toy.track, 4)
    read_by(toy, ("Bo", "Cy"), alone, "entities")
    document = toy.documents["d1"]
    lindt = place(document, "Lindt", 1)

    def names() -> dict[tuple[int, int], Any]:
        return {
            span: value.get("canonical")
            for _, _, span, value in values_inside([document.pk], together, "mention")
        }

    assert names()[lindt] == list(lindt) and place(document, "Halden") not in names()
    exclude.exclude(worker_of(toy.users["Bo"]), BAD)
    exclude.exclude(worker_of(toy.users["Cy"]), BAD)
    assert names()[lindt] == list(place(document, "Mara Lindt"))
    assert names()[place(document, "Halden")] == list(place(document, "Halden"))
    exclude.reinstate(worker_of(toy.users["Cy"]))
    exclude.reinstate(worker_of(toy.users["Bo"]))
    assert names()[lindt] == list(lindt)
