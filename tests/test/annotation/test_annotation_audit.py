"""What changes labels, money or who may come in stands in the log, with who and why; the erased are
not found in it.
"""

from __future__ import annotations

from decimal import Decimal

import pytest
from annotation_world import GOOD, answer_all
from django.test import Client

from annotation.labels import exclude, settle
from annotation.models import Response, Worker
from annotation.workers import leave
from kbpo.accounts.audit import ERASED
from kbpo.accounts.models import Audit, User
from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel, record_labels
from kbpo.sampling.open_track import Money, create_track
from kbpo.submissions.models import Submission
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


def test_whoever_is_erased_is_not_found_in_the_log(
    published: Submission, ada: Client, root: User
) -> None:
    answer_all(ada, GOOD)
    settle.tick()
    worker = Worker.objects.get(user__username="ada")
    before = worker.handle
    exclude.exclude_worker(worker, "Ada wrote to us that she is ill", root)
    exclude.reinstate_worker(worker, root, "She is well again")
    exclude.exclude_worker(worker, "Ada is ill again", root)
    worker.refresh_from_db()
    rated = Response.objects.filter(assignment__worker=worker).earliest("pk").target_id
    who = {"overall": [before, "somebody"], "fluency": [before]}
    value = {"ratings": {"overall": [1.0, 0.5], "fluency": [0.5]}, "people": who}
    record_labels([NewLabel(rated, value, "crowd", "ratings", 2, "elsewhere")])
    leave.ask_to_leave(worker, waives=True)
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
