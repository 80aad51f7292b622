"""Your runs: what waits first, then every run with its score, and money that adds up; refused
uploads and discards apart.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse

from kbpo import clock
from kbpo.accounts.models import Token
from kbpo.evaluation.models import Evaluation
from kbpo.money.models import Budget
from kbpo.money.spend import reserve_money, spend_money
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from tests.conftest import Toy
from tests.test.web.scored import score

As = Callable[[str], Client]
Draft = Callable[..., Submission]
pytestmark = pytest.mark.django_db


def page_of(client: Client, **said: str) -> str:
    page = client.get(reverse("runs"), said)
    assert page.status_code == 200
    return re.sub(r"\s+", " ", page.content.decode())


def scored(toy: Toy, row: Submission, value: float, number: int = 1) -> Evaluation:
    """The run stands on the board with this score."""
    row.move("scored", confirmed_at=clock.now(), sampled_at=clock.now(), scored_at=clock.now())
    evaluation = Evaluation.objects.create(track=toy.track, number=number)
    score(evaluation, row, value)
    return evaluation


def test_what_waits_comes_first_with_its_price_and_its_end(
    toy: Toy, as_user: As, draft: Draft
) -> None:
    row = draft(name="waits")
    page = page_of(as_user("Rosa"))
    at_most = as_user("Rosa").get(reverse("upload-confirm", args=[row.pk])).context["quote"].at_most
    assert f"It costs at most <b>${at_most}</b>" in page
    assert f"{row.status_since + timedelta(days=7):%B}" in page.partition("discarded on")[2][:30]
    assert page.index("waits.jsonl") < page.index(">Runs<")
    assert "waits.jsonl" not in page_of(as_user("Tim"))
    assert 'aria-current="page" data-key="g r"' in page


def test_money_is_one_sum_of_the_ledger(toy: Toy, as_user: As, draft: Draft) -> None:
    row, team = draft(), toy.teams["Patterns"]
    Budget.objects.filter(track=toy.track, scope="team").delete()
    Budget.objects.create(track=toy.track, scope="team", team=team, cap=Decimal("50.00"))
    reserve_money(toy.track, team, row.purpose, Decimal("10.00"), key="r")
    spend_money(toy.track, row.purpose, Decimal("3.35"), key="s")
    row.move("judging", confirmed_at=clock.now(), sampled_at=clock.now())
    shown = as_user("Rosa").get(reverse("runs")).context
    assert (shown["money"].spent, shown["money"].open) == (Decimal("3.35"), Decimal("6.65"))
    assert [one.left for one in shown["purses"]] == [Decimal("40.00")]
    page = page_of(as_user("Rosa"))
    assert "$40.00" in page and "$50.00" in page
    assert "$3.35</a> <small>$6.65 reserved</small>" in page, (
        "the run's own line is of the same book"
    )
    Budget.objects.filter(track=toy.track, scope="team").delete()
    new = Track.objects.create(corpus=toy.corpus, name="Untouched", slug="new", status="open")
    page = page_of(as_user("Rosa"))
    assert "<h3>Untouched" not in page and f"<h3>{toy.track.name}" in page
    assert "no cap" not in page and page.count("Left for the next run") == 1
    new.delete()
    toy.track.status = "closed"
    toy.track.save()
    purses = as_user("Rosa").get(reverse("runs")).context["purses"]
    assert [one.left for one in purses] == [0], "no run will take what is left there"


def test_the_table_has_the_boards_figures_and_the_file_too(
    toy: Toy, as_user: As, draft: Draft
) -> None:
    one, two = draft(name="one"), draft(name="two")
    evaluation = scored(toy, one, 0.41)
    score(evaluation, two, 0.9)  # is judged for the first time: not to be looked at yet
    two.move("judging", confirmed_at=clock.now(), sampled_at=clock.now())
    rosa = as_user("Rosa")
    page = page_of(rosa)
    assert "<b>41.0</b>" in page and "39.0–43.0" in page
    assert "90.0" not in page and "no score yet" in page
    assert "In progress 1" in page and "Scored 1" in page
    assert [
        row.submission for row in rosa.get(reverse("runs") + "?state=scored").context["rows"]
    ] == [one]
    lines = list(
        csv.DictReader(io.StringIO(rosa.get(reverse("runs") + "?format=csv").getvalue().decode()))
    )
    assert [(line["name"], line["state"], line["estimate"]) for line in lines] == [
        ("two", "judging", ""),
        ("one", "scored", "0.41"),
    ]
    assert rosa.get(reverse("runs") + "?state=x").status_code == 404
    assert as_user("Tim").get(reverse("runs") + "?team=patterns").status_code == 404
    assert as_user("Ada").get(reverse("runs")).status_code == 403
    assert Client().get(reverse("runs"))["Location"].startswith(reverse("login"))


def test_discards_stand_apart_and_are_deleted_with_their_file(
    toy: Toy, as_user: As, draft: Draft
) -> None:
    refused = draft(name="broken", body=b"\xff\xfe nonsense")
    kept = draft(name="kept")
    assert refused.status == "refused"
    rosa = as_user("Rosa")
    assert "kept until you delete them; none counts as a run" in page_of(rosa)
    context = rosa.get(reverse("runs")).context
    assert list(context["discards"]) == [refused] and not context["rows"]
    assert refused.reason[:20] in page_of(rosa).replace("&#x27;", "'").replace("&quot;", '"')
    delete = reverse("runs")
    form = {"action": "delete", "pk": refused.pk}
    assert as_user("Tim").post(delete, form).status_code == 404
    assert rosa.post(delete, form).status_code == 302
    refused.refresh_from_db()
    assert refused.deleted_at and not refused.file and not refused.problems.exists()
    assert rosa.get(reverse("upload-check", args=[refused.pk])).status_code == 404
    secret = Token.create_with_secret(toy.users["Rosa"], "laptop")[1]
    by_program = Client(headers={"Authorization": f"Token {secret}"})
    assert by_program.get(f"/api/submissions/{refused.pk}/").status_code == 404
    assert by_program.get(f"/api/submissions/{kept.pk}/").status_code == 200
    assert not rosa.get(reverse("runs")).context["discards"]
    rosa.post(reverse("runs"), {"action": "delete", "pk": kept.pk})
    kept.refresh_from_db()
    assert kept.deleted_at is None and kept.file, "a draft is discarded first, a run is withdrawn"


def test_the_ledger_of_a_run_adds_up_and_says_who_pays(toy: Toy, as_user: As, draft: Draft) -> None:
    team, row = toy.teams["Patterns"], draft()
    Budget.objects.filter(track=toy.track, scope="team").delete()
    reserve_money(toy.track, team, row.purpose, Decimal("10.00"), key="r")
    for key in ("a", "b"):
        spend_money(toy.track, row.purpose, Decimal("0.06"), key=key)
    scored(toy, row, 0.5)
    other = draft(name="other")
    reserve_money(toy.track, team, other.purpose, Decimal("3.00"), key="o")
    rosa, address = as_user("Rosa"), reverse("runs-ledger")
    runs = rosa.get(reverse("runs")).content.decode()
    assert f"{address}?team={team.slug}&amp;run={row.pk}" in runs
    assert f"{address}?team={team.slug}" in runs
    page = rosa.get(address, {"run": row.pk})
    sums = page.context["sums"]
    assert (sums.reserved, sums.spent, sums.open) == (
        Decimal("10.00"),
        Decimal("0.12"),
        Decimal("9.88"),
    )
    moved = {row["kind"]: (row["amount"], row["n"]) for row in page.context["table"].page}
    assert moved == {"reserve": (Decimal("10.00"), 1), "spend": (Decimal("0.12"), 2)}
    said = page.content.decode()
    assert "no budget of its own" in said and "on 2 answers" in said
    Budget.objects.create(track=toy.track, scope="team", team=team, cap=Decimal("50.00"))
    assert "budget of $50.00 on Toy track" in rosa.get(address, {"run": row.pk}).content.decode()
    everything = rosa.get(address)
    listed = everything.context["table"].page
    assert {line["purpose_number"] for line in listed} == {row.pk, other.pk}
    assert everything.context["sums"].reserved == Decimal("13.00")
    for wrong in ("x", "999999", ""):
        assert rosa.get(address, {"run": wrong}).status_code == (404 if wrong else 200)
    assert as_user("Tim").get(address, {"run": row.pk}).status_code == 404
    assert as_user("Tim").get(address, {"team": team.slug}).status_code == 404
