"""What changes labels, money or who may come in stands in the log, with who and why; the erased are
not found in it.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from annotation_world import GOOD, answer_all
from django.test import Client
from django.utils import timezone

from annotation.budget import halts
from annotation.desk import appeals
from annotation.hits import batch
from annotation.labels import exclude, revise, settle
from annotation.models import Policy, Question, Response, Worker
from annotation.questions.order import CannotOrder, order_documents, plan_documents
from annotation.workers import leave, speak
from kbpo.accounts.audit import ERASED
from kbpo.accounts.models import Audit, Invitation, User
from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel, record
from kbpo.sampling.documents import draw as documents
from kbpo.sampling.open_track import Money, create_track
from kbpo.submissions.models import Submission
from kbpo.web.research.teams import invite, withdraw
from tests.conftest import Toy

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_user("root", password="long enough 1", is_staff=True)


def entry(what: str) -> tuple[str | None, str, str, str]:
    """Who did it, about what, what it is now, and why."""
    row = Audit.objects.get(what=what)
    return row.who.username if row.who else None, row.about, row.after, row.why


def test_a_track_is_made_with_its_prices_and_caps(toy: Toy, root: User) -> None:
    money = Money(
        budget=Decimal(500), day=Decimal(50), reward=Decimal("0.07"), fee_rate=Decimal("0.2")
    )
    create_track(toy.corpus, "Second", money=money, who=root, why="For May.")
    said = "relation $0.07 and 20% fee; track at most $500; day at most $50"
    assert entry("make track") == ("root", "track:second", said, "For May.")


def test_documents_are_drawn_and_ordered(toy: Toy, root: User) -> None:
    documents.order_documents(toy.track, 1, seed=7, user=root, why="For recall.")
    assert entry("draw documents") == (
        "root",
        f"track:{toy.track.slug}",
        "1 documents, uniform, seed 7",
        "For recall.",
    )
    plan = plan_documents(toy.track, 1)
    with pytest.raises(CannotOrder, match="say what they are read for"):
        order_documents(toy.track, 1, plan.at_most, who=root, why=" ")
    made = order_documents(toy.track, 1, plan.at_most, who=root, why="For recall.")
    said = f"1 documents by {plan.workers} workers, at most ${plan.at_most}"
    assert entry("order documents") == ("root", str(made.purpose), said, "For recall.")


def test_invitations_are_made_and_withdrawn(root: User) -> None:
    row = invite("annotator", root, uses=3, why="More people.")
    assert entry("invite") == ("root", f"invitation:{row.pk}", "annotator, 3 uses", "More people.")
    for _ in range(2):  # a second click withdraws nothing
        withdraw(Invitation.objects.filter(pk=row.pk), root, "Enough.")
    assert entry("withdraw invitation") == ("root", f"invitation:{row.pk}", "0 left", "Enough.")


def test_labels_that_the_service_reaggregates_by_itself(
    published: Submission, clients: list[Client]
) -> None:
    for client in clients:
        answer_all(client)
    settle.tick()
    old = timezone.now() - timedelta(hours=1)
    Policy.objects.create(track=published.track, aggregation=revise.MODEL, fitted_at=old)
    revise.tick()
    said = f"dawid_skene: 0 of {Question.objects.count()} labels changed"
    assert entry("add up again") == (
        None,
        "track:toy",
        said,
        "New answers have come since the last fit",
    )


def test_work_goes_on_for_a_reason(published: Submission, root: User) -> None:
    halts.pause(None, root, "The texts are garbled")
    with pytest.raises(ValueError, match="why"):
        halts.resume(None, root, " ")
    halts.resume(None, root, "They are mended")
    assert entry("go on") == ("root", "every track", "", "They are mended")
    Audit.objects.all().delete()
    batch.pause_batch(published.purpose, root, "The texts are garbled")
    with pytest.raises(batch.CannotChange, match="why"):
        batch.resume_batch(published.purpose, root, "")
    batch.resume_batch(published.purpose, root, "They are mended")
    assert entry("go on") == ("root", str(published.purpose), "", "They are mended")


@pytest.mark.parametrize(("reinstate", "what"), [(True, "reinstate"), (False, "uphold exclusion")])
def test_an_appeal_is_decided_with_the_reason(
    published: Submission, ada: Client, root: User, reinstate: bool, what: str
) -> None:
    worker = Worker.objects.get(user__username="ada")
    exclude.exclude(worker, "Too fast for reading", root)
    worker.refresh_from_db()
    said = speak.appeal(worker, "I had read it before.")
    appeals.answer_appeal(said.pk, root, "We looked at your answers.", reinstate=reinstate)
    assert entry(what) == (
        "root",
        f"worker:{worker.handle}",
        "",
        "Appeal: We looked at your answers.",
    )
    assert Audit.objects.get(what=what).before == "Too fast for reading"


def test_whoever_is_erased_is_not_found_in_the_log(
    published: Submission, ada: Client, root: User
) -> None:
    answer_all(ada, GOOD)
    settle.tick()
    worker = Worker.objects.get(user__username="ada")
    before = worker.handle
    exclude.exclude(worker, "Ada wrote to us that she is ill", root)
    exclude.reinstate(worker, root, "She is well again")
    exclude.exclude(worker, "Ada is ill again", root)
    worker.refresh_from_db()
    rated = Response.objects.filter(assignment__worker=worker).earliest("pk").target_id
    who = {"overall": [before, "somebody"], "fluency": [before]}
    value = {"ratings": {"overall": [1.0, 0.5], "fluency": [0.5]}, "people": who}
    record([NewLabel(rated, value, "crowd", "ratings", 2, "elsewhere")])
    leave.ask(worker, waives=True)
    worker.refresh_from_db()
    assert worker.handle != before
    now = {"overall": [worker.handle, "somebody"], "fluency": [worker.handle]}
    label = Label.objects.get(origin="elsewhere")
    assert label.value == value | {"people": now}, "nor among those who rated"
    log = [str(row) for row in Audit.objects.values_list("about", "before", "after", "why")]
    assert not any(word in line for line in log for word in (before, "is ill", "is well"))
    done = Audit.objects.filter(about=f"worker:{worker.handle}").order_by("pk")
    assert [(row.what, row.who) for row in done] == [
        ("warn", None),
        ("leave out", root),
        ("reinstate", root),
        ("leave out", root),
    ]
    assert {row.why for row in done if row.who} == {ERASED} == {worker.excluded_reason}
    assert set(Response.objects.values_list("excluded_reason", flat=True)) == {ERASED}, (
        "they do not count all the same"
    )
