"""Terms and tutorials: nobody answers a real question before them, two attempts, remembered by
version, paid once.
"""

from __future__ import annotations

import json
from decimal import Decimal
from hashlib import sha256
from typing import Any

import pytest
from annotation_world import GOOD, learn, says_where_the_money_goes, take
from django.test import Client
from django.utils import timezone
from test_annotation_crowd import knows, logins

from annotation.budget.cents import cents
from annotation.budget.check_books import check_books
from annotation.hits.lease import lease, to_learn
from annotation.interfaces.registry import INTERFACES
from annotation.labels import settle
from annotation.models import Assignment, Payment, Question, Worker
from annotation.workers import consent, payout, teach
from annotation.workers.intake import tutorial_rewards
from annotation.workers.models import Consent, Intake, Terms, TutorialRun
from annotation.workers.worker import worker_of
from kbpo.accounts.models import User
from kbpo.money.models import Budget, Price
from kbpo.money.spend import balance
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from rehearsal.annotators import Crowd

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("untaught")]
TERMS, TUTORIAL = "/annotate/terms/", "/annotate/tutorial/relation/"


def agree(client: Client, **change: Any) -> Any:
    return client.post(TERMS, {"agree": "yes", "version": consent.current().version, **change})


def attempt(client: Client, *, wrong: int = 0) -> str:
    """Goes through the tutorial with some wrong answers; what its page says at the end."""
    client.post(TUTORIAL)
    run = TutorialRun.objects.latest("pk")
    for number, question in enumerate(teach.tutorials()["relation"].asked(run.attempt), start=1):
        said = question["right"] if number > wrong else mistaken(question)
        assert client.post(f"{TUTORIAL}{number}/", said)["Location"] == f"{TUTORIAL}{number}/"
    return client.get(TUTORIAL).content.decode()


def mistaken(question: dict[str, Any]) -> dict[str, Any]:
    """A wrong answer: other names, and a sentence where none holds, or none where some hold."""
    if "none" in question["right"]:
        return {"a": "other", "b": "other", "holds": question["payload"]["predicates"][0]["part"]}
    return {"a": "other", "b": "other", "none": "1"}


def the_worker() -> Worker:
    return Worker.objects.get(user__username="ada")


def test_every_tutorial_can_be_read_and_passed_and_says_why() -> None:
    assert (
        set(teach.shipped())
        == {path.parent.name for path in teach.HOME.glob("*/tutorial.json")}
        <= set(INTERFACES)
    )
    for tutorial in teach.tutorials().values():
        assert 0 < tutorial.needed <= len(tutorial.questions)
        for attempt in (1, 2):
            asked = tutorial.asked(attempt)
            assert len(asked) == len(tutorial.questions)
            for number, question in enumerate(asked, start=1):
                right = teach.right_of(tutorial, number, attempt)
                assert teach.missed_by(tutorial, number, right, attempt) == []
                assert right and len(question["why"]) > 40
                assert {one.criterion for one in right} <= set(tutorial.criteria)
        assert not any(
            one["payload"] == other["payload"]
            for one in tutorial.questions
            for other in tutorial.asked(2)
        )


def test_terms_then_tutorial_then_the_first_question(published: Submission, ada: Client) -> None:
    assert ada.get("/annotate/next/")["Location"] == TERMS
    assert lease(the_worker()) is None, "nothing is leased to somebody who agreed to nothing"
    assert agree(ada)["Location"] == "/annotate/next/"
    assert ada.get("/annotate/next/")["Location"] == TUTORIAL
    assert lease(the_worker()) is None
    assert "You passed" in attempt(ada)
    assert take(ada)
    assert ada.post(take(ada), GOOD).status_code == 302
    assert Assignment.objects.filter(status="submitted").count() == 1


def test_the_tick_and_the_version_are_wanted(published: Submission, ada: Client) -> None:
    refused = ada.post(TERMS, {"version": "1"})
    assert refused.status_code == 422 and "Tick the box" in refused.content.decode()
    stale = agree(ada, version=7)
    assert stale.status_code == 422 and "version 5 holds now" in stale.content.decode()
    assert agree(ada, version="x").status_code == 422
    assert not Consent.objects.exists()
    assert (
        ada.post(TERMS, {"agree": "yes", "version": 5, "next": "https://example.org/"})["Location"]
        == "/annotate/next/"
    )


def test_terms_that_change_are_asked_again_and_lose_nothing(
    published: Submission, ada: Client
) -> None:
    agree(ada)
    attempt(ada)
    address = take(ada)
    Terms.objects.create(version=6, text="All is new\nRead it.")
    sent = ada.post(address, GOOD)
    assert sent["Location"] == f"{TERMS}?next={address}"
    page = ada.get(sent["Location"]).content.decode()
    assert "All is new" in page and f'name="next" value="{address}"' in page
    assert agree(ada, next=address)["Location"] == address
    assert 'value="0-3" checked' in ada.get(address).content.decode()
    assert Consent.objects.count() == 2
    assert "Read it." in Client().get(f"{TERMS}?version=6").content.decode()
    assert "You read short texts" in Client().get(f"{TERMS}?version=1").content.decode()
    assert Client().get(f"{TERMS}?version=7").status_code == 404


def test_a_text_that_people_agreed_to_stays_as_they_read_it(
    published: Submission, ada: Client
) -> None:
    read = {number: consent.version(number) for number in consent.SHIPPED}
    assert {
        number: sha256(text.text.encode()).hexdigest() for number, text in read.items() if text
    } == {
        1: "b545a0e15ac9646d2d877c52426042c9849fc4edede9870a67872e107099f1cd",
        2: "96a47f97534c8fa144da736ddb058c26a4f0f7253c8140a5913ec33dcf2000d1",
        3: "1563f933818ae7ba6708902103da309a56cf535d952b7814a9c629a3c0594776",
        4: "bbf3c2e22528a5002bbe658e5634eba9d51921e6932d956f0811414d4784e62a",
        5: "252c4a20ec90f87b583c54da5bbb584742d28e82f42d684060d32445788cd1f4",
    }, "People agreed to this text. Ship another in a file of its own, with the next number."
    ada.get("/annotate/next/")
    Consent.objects.create(worker=the_worker(), version=1)
    assert not consent.has_consented(the_worker()), "they agreed to another text"
    agree(ada)
    assert consent.has_consented(the_worker())
    assert "differ often from those of others" in ada.get(f"{TERMS}?version=1").content.decode()
    assert "Pay can be refused only by a person" in ada.get(TERMS).content.decode()


def test_an_explanation_stands_under_each_answer_and_not_before(
    published: Submission, ada: Client
) -> None:
    agree(ada)
    ada.post(TUTORIAL)
    why = teach.tutorials()["relation"].questions[0]["why"]
    assert (
        "two sentences hold" in why
        and "two sentences hold" not in ada.get(f"{TUTORIAL}1/").content.decode()
    )
    ada.post(f"{TUTORIAL}1/", {"a": "0-11", "b": "21-31", "none": "1"})
    page = ada.get(f"{TUTORIAL}1/").content.decode()
    assert "two sentences hold" in page and "what the text says about A and B" in page
    ada.post(f"{TUTORIAL}1/", teach.tutorials()["relation"].questions[0]["right"])
    assert [one["right"] for one in TutorialRun.objects.get().answers] == [False], (
        "the first answer counts"
    )
    assert ada.get(f"{TUTORIAL}5/")["Location"] == TUTORIAL
    assert ada.post(f"{TUTORIAL}2/", {}).status_code == 422
    assert ada.get("/annotate/tutorial/nonsense/").status_code == 404


def test_there_are_two_attempts_and_no_third(published: Submission, ada: Client) -> None:
    agree(ada)
    assert "You have a second attempt" in attempt(ada, wrong=3)
    assert "Not passed" in attempt(ada, wrong=3)
    ada.post(TUTORIAL)
    assert TutorialRun.objects.count() == 2
    assert lease(the_worker()) is None


@pytest.mark.soak
def test_the_second_attempt_has_other_questions_and_what_it_taught_can_still_be_read(
    published: Submission, ada: Client
) -> None:
    agree(ada)
    attempt(ada, wrong=3)
    first = [ada.get(f"{TUTORIAL}{number}/").content.decode() for number in range(1, 9)]
    ada.post(TUTORIAL)
    asked = teach.tutorials()["relation"].asked(2)
    for number, (question, before) in enumerate(zip(asked, first, strict=True), start=1):
        key = f'data-document="{question["payload"]["document"]["key"]}"'
        assert key in ada.get(f"{TUTORIAL}{number}/").content.decode() and key not in before
        ada.post(f"{TUTORIAL}{number}/", question["right"])
    assert TutorialRun.objects.get(attempt=2).passed


def test_feedback_shows_ones_own_answer_beside_the_right_one(
    published: Submission, ada: Client
) -> None:
    agree(ada)
    ada.post(TUTORIAL)
    ada.post(f"{TUTORIAL}1/", {"holds": "per:employee_or_member_of>"})
    run = TutorialRun.objects.get()
    told = {line.words: (line.yours, line.right) for line in teach.feedback(run, 1).lines}
    assert told == {
        "Karin Osted works or worked for Osted Line": (True, True),
        "Karin Osted leads or led Osted Line": (False, True),
    }, "both names can only stand for themselves"
    page = ada.get(f"{TUTORIAL}1/").content.decode()
    assert all(words in page for words in told)
    ada.post(f"{TUTORIAL}2/", {"a": "other", "b": "90-94", "none": "1"})
    run.refresh_from_db()
    told = {line.words: (line.yours, line.right) for line in teach.feedback(run, 2).lines}
    assert told == {
        "A, “Hale”, is none of the names that were offered": (True, False),
        "A, “Hale”, is “Ruben Hale”": (False, True),
        "B, “Lund”, is “Lund”": (True, True),
        "None of the sentences holds": (True, True),
    }


def test_feedback_on_a_document_names_what_differs_and_where(
    published: Submission, ada: Client
) -> None:
    agree(ada)
    worker = the_worker()
    lesson = teach.tutorials()["entities"]
    right = json.loads(lesson.questions[1]["right"]["mentions"][0])
    mine = [one | {"type": "GPE"} if one["type"] == "ORG" else one for one in right[:-1]]
    run = teach.begin(worker, lesson)
    assert run is not None
    run = teach.answer(run, 1, lesson.questions[0]["right"])
    run = teach.answer(run, 2, {"mentions": [json.dumps(mine)]})
    beside = teach.feedback(run, 2)
    differing = {line.words: (line.yours, line.right) for line in beside.differing}
    assert differing == {
        "“Dunmore College”: organisation": (False, True),
        "“Dunmore College”: state or city": (True, False),
        "“dean”: title or job": (False, True),
    }
    numbers = {line.number for line in beside.differing}
    where = {
        beside.text[begin:end]
        for begin, end, _, said in beside.marks
        if numbers & {int(one) for one in said.split(", ")}
    }
    assert where == {"Dunmore College", "dean"}
    page = ada.get("/annotate/tutorial/entities/2/").content.decode()
    assert "3 of 8 differ" in page and 'data-badge="' in page


def test_nobody_is_sent_to_a_tutorial_without_attempts_or_told_of_questions_behind_it(
    published: Submission, ada: Client
) -> None:
    agree(ada)
    Question.objects.filter(pk=Question.objects.earliest("pk").pk).update(interface="entities")
    assert to_learn(the_worker()) == "relation"
    ada.get("/annotate/next/?kind=entities")
    assert to_learn(the_worker()) == "entities", "what they chose comes first"
    ada.get("/annotate/next/?kind=")
    Question.objects.update(interface="relation")
    attempt(ada, wrong=3)
    assert "6 questions wait" in ada.get("/annotate/").content.decode()
    ada.post(TUTORIAL)
    assert to_learn(the_worker()) == "relation", "the last attempt is under way"
    attempt(ada, wrong=3)
    assert to_learn(the_worker()) == "" and teach.learnable(the_worker()) == [
        name for name in teach.tutorials() if name != "relation"
    ]
    assert ada.get("/annotate/next/")["Location"] == "/annotate/"
    home = ada.get("/annotate/").content.decode()
    assert "Nothing to judge right now" in home and ">Not passed</a>" in home
    Question.objects.filter(pk=Question.objects.earliest("pk").pk).update(interface="entities")
    assert to_learn(the_worker()) == "entities", "another interface can still be learned"
    assert "1 question waits" in ada.get("/annotate/").content.decode()


def test_a_new_version_is_learned_anew(published: Submission, ada: Client) -> None:
    agree(ada)
    attempt(ada)
    assert take(ada)
    Assignment.objects.update(status="returned")
    TutorialRun.objects.update(version=0)
    assert ada.get("/annotate/next/")["Location"] == TUTORIAL


def test_passing_is_paid_once_out_of_money_that_was_reserved_before(
    published: Submission, ada: Client
) -> None:
    track = published.track
    Intake.objects.create(track=track, tutorial_reward=Decimal("0.75"))
    agree(ada)
    assert (
        "You are paid <b>$0.75</b>, once, when you have passed."
        in ada.get(TUTORIAL).content.decode()
    )
    ada.post(TUTORIAL)
    purpose = TutorialRun.objects.get().purpose
    assert balance(purpose=purpose).open == Decimal("0.75")
    attempt(ada, wrong=3)
    attempt(ada)
    ada.post(f"{TUTORIAL}8/", teach.tutorials()["relation"].questions[7]["right"])  # sent again
    payment = Payment.objects.get()
    assert (payment.amount, payment.status, payment.worker) == (
        Decimal("0.75"),
        "owed",
        the_worker(),
    )
    sums = balance(purpose=purpose)
    assert (sums.reserved, sums.spent, sums.open) == (Decimal("0.75"), Decimal("0.75"), 0)
    TutorialRun.objects.update(version=0)
    attempt(ada)
    assert Payment.objects.count() == 1 and balance(track=track).reserved == Decimal("100.75")
    settle.tick()


def test_it_pays_by_default_and_every_list_of_money_says_so(
    published: Submission, ada: Client
) -> None:
    """Out of the money of the track; nobody has set any rule."""
    agree(ada)
    assert "paid $0.75" in ada.get("/annotate/").content.decode(), (
        "it is said before anybody begins"
    )
    assert "You are paid <b>$0.75</b>, once" in ada.get(TUTORIAL).content.decode()
    assert not Intake.objects.exists()
    assert "$0.75 for the tutorial stands on your page" in attempt(ada)
    purpose = TutorialRun.objects.get().purpose
    [mine] = [one for one in cents() if one.purpose == purpose]
    assert (mine.track, mine.state, mine.amount) == (published.track.pk, "owed", Decimal("0.75"))
    assert mine.worker == the_worker().handle
    [owed] = payout.owed()
    assert (owed.worker, owed.amount) == (the_worker(), Decimal("0.75"))
    admin = User.objects.create(username="anna", is_staff=True)
    says_where_the_money_goes()
    made = payout.pay(
        owed.worker, upto=owed.upto, amount=owed.amount, reference="bank 7", key="k" * 16, who=admin
    )
    assert [(one.what, one.n, one.amount) for one in payout.lines_of(made)] == [
        (
            "Tutorial passed: Read a few sentences and say what they tell about two names",
            1,
            Decimal("0.75"),
        )
    ]
    assert [one.sentence for one in check_books()] == []


@pytest.mark.soak
def test_who_was_paid_before_is_told_that_a_new_version_is_not_paid(
    published: Submission, ada: Client
) -> None:
    agree(ada)
    attempt(ada)
    assert Payment.objects.get().amount == Decimal("0.75")
    TutorialRun.objects.update(version=0)
    assert "The tutorial pays nothing now" in ada.get(TUTORIAL).content.decode()
    home = ada.get("/annotate/").content.decode()
    assert "paid $0.75" not in home and home.count("pays nothing now") == 1, (
        "kinds that no track asks for are not offered"
    )


def test_what_no_track_can_pay_is_not_announced(published: Submission, ada: Client) -> None:
    Budget.objects.create(track=published.track, scope="track", cap=Decimal("100.74"))
    agree(ada)
    assert "The tutorial pays nothing now" in ada.get(TUTORIAL).content.decode()
    Budget.objects.update(cap=Decimal("100.75"))
    assert "You are paid <b>$0.75</b>" in ada.get(TUTORIAL).content.decode()


def other_track(track: Track, name: str, interface: str = "") -> Track:
    """Another open track of the corpus, which asks through an interface."""
    made = Track.objects.create(corpus=track.corpus, name=name, slug=name.lower(), status="open")
    if interface:
        Price.objects.create(track=made, interface=interface, reward=Decimal("0.50"))
    return made


def rewards_for(worker: Worker, interface: str) -> list[tuple[Track, Decimal]]:
    """The tracks that pay a worker for one tutorial."""
    return tutorial_rewards(worker, [interface])[interface]


@pytest.mark.soak
def test_a_track_pays_only_for_what_it_asks(published: Submission, ada: Client) -> None:
    agree(ada)
    worker, lesson = the_worker(), teach.tutorials()["entities"]
    assert teach.offered_reward(worker, lesson) == 0
    home = ada.get("/annotate/").content.decode()
    assert (home.count("paid $0.75"), home.count("pays nothing now")) == (1, 0)
    names = other_track(published.track, "Names", "entities")
    assert rewards_for(worker, "entities") == [(names, Decimal("0.75"))]
    assert rewards_for(worker, "relation") == [(published.track, Decimal("0.75"))]
    first = Question.objects.earliest("pk")
    Question.objects.filter(pk=first.pk).update(interface="entities")
    assert rewards_for(worker, "entities") == [
        (published.track, Decimal("0.75")),
        (names, Decimal("0.75")),
    ]
    Question.objects.filter(pk=first.pk).update(track=names)
    assert [track for track, _ in rewards_for(worker, "entities")] == [names]
    older = published.track
    Price.objects.create(track=older, interface="entities", reward=Decimal("0.50"))
    assert [track for track, _ in rewards_for(worker, "entities")] == [
        names,
        older,
    ], "where questions wait"
    Question.objects.filter(pk=first.pk).update(status="settled")
    assert [track for track, _ in rewards_for(worker, "entities")] == [
        older,
        names,
    ], "else the oldest"
    Question.objects.filter(pk=first.pk).update(status="cancelled")
    Price.objects.filter(track=names).delete()
    assert [track for track, _ in rewards_for(worker, "entities")] == [older]


def test_volunteers_are_paid_by_tracks_that_take_them(published: Submission, ada: Client) -> None:
    """And what an open door costs is taken from nobody else's budget."""
    track = other_track(published.track, "Welcome", "relation")
    Intake.objects.create(track=track, volunteers="open")
    User.objects.update(is_volunteer=True)
    agree(ada)
    ada.post(TUTORIAL)
    assert TutorialRun.objects.get().track == track
    assert balance(track=published.track).reserved == Decimal("100.00")
    TutorialRun.objects.all().delete()
    Intake.objects.all().delete()
    assert "The tutorial pays nothing now" in ada.get(TUTORIAL).content.decode()
    ada.post(TUTORIAL)
    assert TutorialRun.objects.get().promised == 0, "it can be taken all the same"
    assert balance(track=published.track).reserved == Decimal("100.00")


def test_only_a_track_pays_whose_questions_are_where_the_worker_is(
    published: Submission, ada: Client
) -> None:
    agree(ada)
    worker = the_worker()
    Track.objects.update(platform="mturk")
    assert rewards_for(worker, "relation") == []
    stranger = Worker.objects.create(platform="mturk", handle="m" * 32)
    assert [track for track, _ in rewards_for(stranger, "relation")] == [published.track]
    stranger.excluded_at = timezone.now()
    assert rewards_for(stranger, "relation") == [], "whom we offer no questions needs no lesson"


@pytest.mark.soak
def test_a_promise_that_was_not_earned_goes_back(published: Submission, ada: Client) -> None:
    Intake.objects.create(tutorial_reward=Decimal("0.75"))
    agree(ada)
    attempt(ada, wrong=3)
    attempt(ada, wrong=3)
    purpose = TutorialRun.objects.exclude(promise=None).first().purpose
    assert balance(purpose=purpose).released == Decimal("0.75") and not Payment.objects.exists()


def test_nothing_is_promised_beyond_the_budget(published: Submission, ada: Client) -> None:
    Intake.objects.create(tutorial_reward=Decimal("0.75"))
    Budget.objects.create(track=published.track, scope="track", cap=Decimal("100.50"))
    agree(ada)
    ada.post(TUTORIAL)
    assert "The tutorial pays nothing now" in ada.get(TUTORIAL).content.decode()
    attempt(ada)
    assert not Payment.objects.exists() and balance(track=published.track).reserved == Decimal(
        "100.00"
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.soak
def test_a_simulated_crowd_reads_the_terms_and_passes_the_tutorial(
    published: Submission, live_server: Any
) -> None:
    work = Crowd(live_server.url, logins("ada", "bea", "cid"), knows).work(at_most=60)
    assert (work.answers, work.wrong, work.errors) == (18, 0, [])
    assert Consent.objects.count() == 3
    assert list(TutorialRun.objects.values_list("attempt", "passed")) == [(1, True)] * 3


@pytest.mark.soak
@pytest.mark.django_db(transaction=True)
def test_a_simulated_crowd_that_was_stopped_in_its_last_attempt_passes_and_judges(
    published: Submission, live_server: Any, client: Client
) -> None:
    login = logins("ada")
    client.login(username="ada", password=login[0][1])
    agree(client)
    attempt(client, wrong=3)
    client.post(TUTORIAL)  # the second attempt, stopped after two questions
    for number, question in enumerate(teach.tutorials()["relation"].asked(2)[:2], start=1):
        client.post(f"{TUTORIAL}{number}/", question["right"])
    work = Crowd(live_server.url, login, knows).work(at_most=60)
    assert (work.answers, work.errors) == (6, [])
    runs = TutorialRun.objects.order_by("attempt").values_list("attempt", "passed")
    assert list(runs) == [(1, False), (2, True)]


@pytest.mark.soak
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("interface", sorted(teach.shipped()))
def test_simulated_workers_pass_every_tutorial_at_once(
    published: Submission, live_server: Any, monkeypatch: pytest.MonkeyPatch, interface: str
) -> None:
    monkeypatch.setattr(
        "annotation.hits.lease.to_learn",
        lambda worker: "" if interface in teach.taught(worker) else interface,
    )
    able: Any = {"finds": lambda _: {}, "opinions": object()}
    Crowd(live_server.url, logins("ada"), knows, **able).work(at_most=60)
    run = TutorialRun.objects.get(interface=interface)
    assert (run.attempt, run.passed, [one["right"] for one in run.answers]) == (
        1,
        True,
        [True] * len(run.answers),
    )


def test_learning_by_hand_is_what_the_fixture_does(annotator: Any) -> None:
    worker = worker_of(annotator("dee"))
    learn(worker)
    assert consent.has_consented(worker) and teach.taught(worker) == list(INTERFACES)
