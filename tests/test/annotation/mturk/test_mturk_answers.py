"""Answers that come twice, late, from elsewhere, or only to one of the two sides: none is lost or
taken twice.
"""

from __future__ import annotations

import pytest
from django.test import Client
from mturk_world import (
    Turk,
    check_books,
    due,
    put_up,
    round_,
    rounds,
)

from annotation.models import (
    HIT,
    Assignment,
    Payment,
    Response,
)
from kbpo.instances.models import Label
from kbpo.submissions.models import Submission

pytestmark = pytest.mark.django_db


def test_an_answer_is_taken_in_once_however_often_it_is_told(up: Submission, turk: Turk) -> None:
    turk.do("W1", turk.hits()[0])
    turk.fault("ListAssignmentsForHIT", "duplicate", times=8)
    turk.fault("ListHITs", "duplicate")
    rounds()
    assert Assignment.objects.exclude(raw=None).count() == 1
    assert put_up(turk) == 6 and HIT.objects.counts() == {"open": 6}
    check_books(turk)


@pytest.mark.parametrize("said", ["[" * 100_000, '{"a": ["\\u0000 \\ud800"]}'])
@pytest.mark.soak
def test_an_answer_that_nobody_can_read_stands_in_nobodys_way(
    up: Submission, turk: Turk, said: str
) -> None:
    hit = turk.hits()[0]
    _, src = turk.accept("W1", hit)
    form = turk.fill_in(src)
    turk.send(form | {"answer": said})
    turk.do("W2", hit)
    turk.do("W3", hit)
    rounds()
    answers = Assignment.objects.filter(hit__external_id=hit)
    assert sorted(answers.values_list("status", flat=True)) == ["failed", "paid", "paid"]
    _, src = turk.accept("W1", turk.hits()[1])
    page = Client().post("/" + src.partition("//")[2].partition("/")[2], {"answer": said})
    assert page.status_code < 500


@pytest.mark.soak
def test_an_answer_that_only_we_have_is_a_draft_and_is_never_paid(
    up: Submission, turk: Turk
) -> None:
    _, src = turk.accept("W1", turk.hits()[0])
    form = turk.fill_in(src)
    turk.fault("externalSubmit", "lose")
    turk.send(form)  # the worker was told that it arrived
    rounds()
    assert Assignment.objects.get().status == "leased" and Assignment.objects.get().draft
    assert not Payment.objects.exists() and not Response.objects.exists()
    turk.send(form)  # sent again: it counts once
    rounds()
    assert Payment.objects.counts() == {"paid": 1}
    check_books(turk)


@pytest.mark.soak
def test_an_answer_after_the_hit_expired_counts_and_is_paid(up: Submission, turk: Turk) -> None:
    hit = turk.hits()[0]
    _, src = turk.accept("W1", hit)
    with turk.store.begin() as books:
        books.run("UPDATE hit SET expiration = ? WHERE id = ?", books.now - 1, hit)
    HIT.objects.filter(external_id=hit).update(renewed_at="2026-01-01T00:00:00Z")
    due()
    round_()
    turk.send(turk.fill_in(src))
    rounds()
    assert Label.objects.get(target__kind="pair").n == 1
    assert Payment.objects.counts() == {"paid": 1}
    check_books(turk)
