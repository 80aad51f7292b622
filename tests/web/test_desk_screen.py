"""The desk says what needs somebody, what is under way, what a day cost and how the service is; one
queue for experts; a reason that is typed outlives a refresh.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from annotation.desk.experts import dispute
from annotation.hits.batch import batch, batches
from annotation.labels import exclude
from annotation.models import HIT, Assignment, Comparison, Worker
from annotation.workers.worker import worker_of
from kbpo import clock
from kbpo.accounts.models import AccountRequest, Audit
from kbpo.clock import served
from kbpo.clock.models import Heartbeat
from kbpo.evaluation.run import tick as estimate
from kbpo.money.models import Budget, Ledger
from kbpo.money.purpose import Purpose
from kbpo.money.spend import balance
from kbpo.queue import MAX_ATTEMPTS
from kbpo.releases import make
from kbpo.releases.models import Release
from kbpo.sampling.confirm import confirm
from kbpo.sampling.draw import tick as draw
from kbpo.sampling.open_track import close_track
from kbpo.submissions.models import Submission
from kbpo.submissions.receive import withdraw
from kbpo.tracks.models import Track
from kbpo.web.components.days import Day, draw_days
from kbpo.web.components.figures import money_text
from kbpo.web.desk import health, stages
from kbpo.web.desk.quality import experts
from tests.conftest import Toy
from tests.web.test_desk_pages import judged

As = Callable[[str], Client]
pytestmark = pytest.mark.django_db
__all__ = ["judged"]


@pytest.fixture(autouse=True)
def workers_answer() -> Iterator[None]:
    cache.set(health.COUNT_KEPT, 2, 60)
    yield
    cache.delete(health.COUNT_KEPT)


def doubt(toy: Toy, *names: str) -> list[Worker]:
    """Workers whose answers to questions with a known answer are all wrong."""
    found = []
    for name in names:
        worker = worker_of(toy.users[name])
        for _ in range(12):
            hit = HIT.objects.create(
                status="closed", track=toy.track, platform="pool", reward=Decimal("0.10")
            )
            go = Assignment.objects.create(
                status="approved", hit=hit, worker=worker, leased_until=clock.now(), raw={}
            )
            Comparison.objects.create(assignment=go, kind="gold", against=True)
        found.append(worker)
    return found


def test_all_who_are_shown_are_kept_with_one_reason(toy: Toy, as_user: As) -> None:
    admin, (ada, bo, cy) = as_user("Admin"), doubt(toy, "Ada", "Bo", "Cy")
    assert "Keep all 3 annotators" in admin.get(reverse("desk")).content.decode()
    shown = [ada.handle, bo.handle]
    admin.post(reverse("desk"), {"action": "keep-all", "worker": shown, "why": " "})
    assert len(exclude.undecided()) == 3, "nobody is kept without a reason"
    admin.post(
        reverse("desk"), {"action": "keep-all", "worker": shown, "why": "The gold was wrong."}
    )
    assert [one.worker for one in exclude.undecided()] == [cy]
    assert Audit.objects.filter(what="keep", why="The gold was wrong.").count() == 2
    assert as_user("Rosa").post(reverse("desk"), {"action": "keep-all"}).status_code == 403


def test_what_asks_for_an_answer_is_one_line_each(toy: Toy, as_user: As) -> None:
    served.beat()
    admin = as_user("Admin")
    page = admin.get(reverse("desk")).content.decode()
    assert "Everything moves, and nothing failed." in page and "What needs you" not in page
    AccountRequest.objects.create(name="Nia", email="nia@lab.example", team="Lab")
    page = admin.get(reverse("desk")).content.decode()
    assert "<b>1 request</b> for an account" in page and reverse("desk-people") in page


def test_a_closed_track_that_judges_on_stands_among_what_is_to_be_decided(
    toy: Toy, as_user: As, draft: Any
) -> None:
    served.beat()
    admin, row = as_user("Admin"), confirm(draft(), toy.users["Rosa"])
    draw()
    assert "What needs you" not in admin.get(reverse("desk")).content.decode()
    close_track(toy.track, toy.users["Admin"], "The year is over.")
    row.refresh_from_db()
    held = balance(row.purpose).open
    assert row.status == "judging" and held > 0
    page = admin.get(reverse("desk")).content.decode()
    needs = page.split('id="needs"')[1].split('id="runs"')[0]
    said = " ".join(needs.split())
    assert "Toy track is closed, and <b>1 run</b> of it is judged still" in said
    assert money_text(held) in said and reverse("submission", args=[row.pk]) in said
    withdraw(row, toy.users["Admin"])
    assert "is judged still" not in admin.get(reverse("desk")).content.decode()


def test_a_release_that_was_not_made_stands_on_the_desk_with_what_to_do(
    toy: Toy, as_user: As, judged: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ValueError("something cannot be written")

    served.beat()
    estimate()
    close_track(toy.track)
    admin = as_user("Admin")
    admin.post(reverse("desk-track", args=["toy"]), {"verb": "release"})
    row = Release.objects.get()
    with monkeypatch.context() as broken:
        broken.setattr(make, "write_release", fails)
        make.tick()
        needs = " ".join(admin.get(reverse("desk")).content.decode().split())
        assert "Release 1 of Toy track" in needs and "tried again by itself at" in needs
        admin.post(reverse("desk"), {"action": "retry", "kind": "release", "pk": row.pk})
        row.refresh_from_db()
        assert (row.status, row.attempts) == ("ordered", 0)
        Release.objects.update(attempts=MAX_ATTEMPTS - 1)
        make.tick()
    row.refresh_from_db()
    assert row.status == "failed"
    needs = " ".join(admin.get(reverse("desk")).content.decode().split('id="runs"')[0].split())
    assert "An internal error (ValueError). We were told." in needs
    assert "“manage.py release toy DIRECTORY” makes it at once" in needs
    assert reverse("desk-track", args=["toy"]) in needs
    dismissal = reverse("desk")
    form = {"action": "dismiss", "kind": "release", "pk": row.pk}
    admin.post(dismissal, form | {"why": ""})
    assert "Release 1 of Toy track" in admin.get(reverse("desk")).content.decode()
    admin.post(dismissal, form | {"why": "Another one is coming."})
    assert "manage.py release toy" not in admin.get(reverse("desk")).content.decode()
    admin.post(reverse("desk"), {"action": "retry", "kind": "release", "pk": row.pk})
    assert Release.objects.get(number=2).status == "ordered"
    assert "manage.py release toy" not in admin.get(reverse("desk")).content.decode()


def test_a_track_that_outlives_its_announced_last_day_says_so(
    toy: Toy, as_user: As, client: Client
) -> None:
    today, admin = clock.now().date(), as_user("Admin")
    said, line = "The announced last day was", "<b>still takes them</b>"

    def pages() -> list[str]:
        names = [reverse("track", args=["toy"]), reverse("tracks")]
        return [client.get(name).content.decode() for name in names]

    Track.objects.filter(pk=toy.track.pk).update(closes_on=today)
    assert said not in pages()[0] and line not in admin.get(reverse("desk")).content.decode()
    Track.objects.filter(pk=toy.track.pk).update(closes_on=today - timedelta(days=1))
    page, listing = pages()
    assert said in page and ", until" not in page and "announced was" in listing
    assert line in admin.get(reverse("desk")).content.decode()
    toy.track.refresh_from_db()
    close_track(toy.track, toy.users["Admin"], "The year is over.")
    assert said not in pages()[0] and "announced was" not in pages()[1]
    assert line not in admin.get(reverse("desk")).content.decode()


def test_a_run_that_is_only_being_scored_keeps_what_was_asked_for_it(
    judged: Submission, as_user: As
) -> None:
    assert judged.status == "judging" and not batches(), "nobody is asked anything any more"
    page = as_user("Admin").get(reverse("desk")).content.decode()
    line = page.split('id="runs"')[1].split('id="stages"')[0]
    asked = batch(judged.purpose)
    assert asked is not None and asked.done == asked.asked > 0
    assert f"{asked.done} of {asked.asked}" in line and money_text(asked.spent) in line
    assert f"{asked.answers} of {asked.answers_wanted}" in line


def test_only_stages_where_something_waits_are_shown(toy: Toy, as_user: As, draft: Any) -> None:
    admin = as_user("Admin")
    assert "Read uploads" not in admin.get(reverse("desk")).content.decode()
    row: Submission = draft()
    row.move("received")
    page = admin.get(reverse("desk")).content.decode()
    assert "Read uploads" in page and "Draw samples" not in page
    assert f"{row.team.name} {row.name}" in page.split('id="runs"')[1].split('id="stages"')[0]


def test_the_desk_says_when_clock_workers_disk_or_backup_need_somebody(
    toy: Toy, as_user: As, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MEDIA_ROOT = str(tmp_path)
    signs = {sign.name: sign for sign in health.signs([])}
    assert (signs["Clock"].says, signs["Clock"].well) == ("it never ran", False)
    assert (signs["Last backup"].says, signs["Last backup"].well) == ("none was noted", True)
    served.beat()
    mark = tmp_path / health.BACKUP_MARK
    mark.touch()
    signs = {sign.name: sign for sign in health.signs([])}
    assert all(sign.well for sign in signs.values()), signs
    os.utime(mark, (time.time() - 3 * 86400,) * 2)
    Heartbeat.objects.update(at=clock.now() - timedelta(minutes=10))
    cache.set(health.COUNT_KEPT, 0, 60)
    monkeypatch.setattr(health, "LEAST_FREE", 1.1)
    signs = {sign.name: sign for sign in health.signs([])}
    assert [name for name, sign in signs.items() if not sign.well] == [
        "Clock",
        "Workers",
        "Disk",
        "Last backup",
    ]
    page = as_user("Admin").get(reverse("desk")).content.decode()
    assert "Ticked 10" in page and "None answers" in page and "nothing failed" not in page


def test_what_people_judge_is_no_queue_of_the_workers() -> None:
    nine = timedelta(minutes=9)
    judged = stages.Stage(stages.SCORE[0], stages.SCORE[1], 4, nine, stages.SCORE[3])
    reading = stages.Stage("Read uploads", "ingest", 1, nine, timedelta(minutes=10))
    assert health._queue([judged]).says == "empty"
    assert health._queue([judged, reading]).says == "1 waits, the oldest 9\u00a0min"


def test_scored_work_of_days_without_a_backup_needs_somebody(
    toy: Toy, draft: Any, settings: Any, tmp_path: Path
) -> None:
    settings.MEDIA_ROOT = str(tmp_path)
    row, now = draft(), clock.now()

    def sign() -> health.Sign:
        return next(one for one in health.signs([]) if one.name == "Last backup")

    row.move("scored", scored_at=now)
    assert sign().well, "what was scored just now may be saved tonight"
    Submission.objects.update(scored_at=now - timedelta(days=4))
    assert not sign().well and "none was noted, and runs were scored days ago" in sign().says
    (tmp_path / health.BACKUP_MARK).touch()
    assert sign().well


def test_money_is_drawn_by_day_with_its_cap() -> None:
    first = date(2026, 11, 1)
    days = [Day(first + timedelta(days=n), Decimal(n)) for n in range(5)]
    drawn = draw_days(days, Decimal(8))
    assert 'aria-label="Spent a day: $4.00 today, at most $4.00 on 5 November"' in drawn
    assert drawn.count("<rect") == 5 and "$8.00 a day at most" in drawn
    assert 'height="36.0"' in drawn, "today is half of the cap, which is as high as the chart"
    assert "<line" not in draw_days(days, Decimal(100)), "a cap far above says nothing"
    assert "$0.00 today" in draw_days([Day(first, Decimal(0))])


def test_the_desk_adds_up_each_day(toy: Toy, as_user: As) -> None:
    noon = datetime.combine(clock.now().date(), datetime.min.time(), UTC) + timedelta(minutes=1)
    for key, (days, amount) in enumerate([(0, "1.50"), (0, "0.25"), (3, "4.00")]):
        Ledger.objects.create(
            track=toy.track,
            purpose=Purpose("gold", 1),
            kind="spend",
            amount=Decimal(amount),
            key=str(key),
            created_at=noon - timedelta(days=days),
        )
    page = as_user("Admin").get(reverse("desk")).content.decode()
    assert "Spent a day: $1.75 today, at most $4.00 on" in page
    Budget.objects.create(track=toy.track, scope="day", cap=Decimal("6.00"))
    assert "$6.00 a day at most" in as_user("Admin").get(reverse("desk")).content.decode()
    Track.objects.create(corpus=toy.corpus, name="Other", slug="other", status="open")
    page = as_user("Admin").get(reverse("desk")).content.decode()
    assert "a day at most" not in page, "the other track has no cap of a day"


def test_each_track_is_a_line_with_how_many_questions_are_ones_own(
    judged: Submission, toy: Toy, as_user: As
) -> None:
    first, second = judged.predictions.order_by("pk")[:2]
    for prediction, who in ((first, "Admin"), (second, "Rosa")):
        dispute(judged, prediction.instance.target_id, toy.users[who], "It is the town beside it.")
    page = as_user("Admin").get(reverse("desk-quality"))
    assert [(row["n"], row["yours"]) for row in page.context["queue"]] == [(2, 1)]
    assert "Answer the next" in page.content.decode()
    assert experts.waiting_for_experts() == 2
    assert "<b>2 judgments</b>" in as_user("Admin").get(reverse("desk")).content.decode()


def test_one_page_has_all_that_waits_for_an_expert_and_a_map_of_the_tools(
    toy: Toy, as_user: As
) -> None:
    address = reverse("desk-quality")
    page = as_user("Admin").get(address).content.decode()
    assert "Nothing waits." in page and reverse("desk-pilots", args=["toy"]) in page
    assert as_user("Rosa").get(address).status_code == 403
