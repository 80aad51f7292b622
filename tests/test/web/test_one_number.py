"""One number has one source: what pages, files and the API tell of a submission agrees, from its
draft until more was ordered.
"""

from __future__ import annotations

import csv
import html
import io
import re
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from kbpo.accounts.models import Delivery, Token
from kbpo.evaluation.due import finished_submissions
from kbpo.evaluation.run import score_track
from kbpo.instances.record import NewLabel, record_labels
from kbpo.money.models import Ledger
from kbpo.money.spend import Bill, balance, reserve_money, spend_bill_groups
from kbpo.sampling import draw, plan
from kbpo.sampling.confirm import confirm_plan, current_order_offer, order_judgments
from kbpo.sampling.models import Sample, Threshold
from kbpo.submissions.models import Submission
from kbpo.web.components.figures import money_text
from scoring.words import ALL_JUDGED, interval_text, no_width_text, number_text
from tests.conftest import Toy
from tests.test.evaluation.replay import PART, Replay
from tests.test.web.scored import make_study

pytestmark = pytest.mark.django_db
N = 160
ENDS = ("value", "low80", "high80", "low95", "high95")


class Town:
    """A world whose judgments cost money and whose people differ: every fourth target has two
    answers against one.
    """

    def __init__(self, toy: Toy, n: int = N, *, design: str = "poisson") -> None:
        self.toy, self.world = toy, Replay.of(toy, n, 0.5, design=design)
        make_study(toy.track, toy.teams["Patterns"])
        toy.users["Rosa"].email = "Rosa@example.org"
        toy.users["Rosa"].save(update_fields=["email"])

    def answer(self, row: Submission, most: int | None = None, unanswered: int = 0) -> None:
        """What waits is judged, paid by a submission; of the first some find no answer."""
        waiting = Sample.objects.filter(target__labels__isnull=True).order_by("target__u")
        targets = list(dict.fromkeys(waiting.values_list("target", flat=True)))[:most]
        which = {pk: at for at, pk in enumerate(self.world.target)}
        labels, bills = [], []
        for number, pk in enumerate(targets):
            if number < unanswered:
                labels.append(NewLabel(pk, {}, "crowd", "nonresponse", 0, "q"))
                continue
            value = {"shown": [PART], "holds": [PART] if self.world.true[which[pk]] else []}
            share = 1 / 3 if which[pk] % 4 == 0 else 0.0
            labels.append(NewLabel(pk, value, "crowd", "majority", 3, "q", share))
            bills.append([Bill(row.purpose, Decimal("0.15"), f"answer:{pk}")])
        record_labels(labels)
        assert not any(spend_bill_groups(self.toy.track, bills))

    def ask_all(self, row: Submission) -> None:
        """All that a submission predicts is drawn, with certainty."""
        reserve_money(self.toy.track, row.team, row.purpose, Decimal("9"), key="all")
        batch = row.batches.get()
        Threshold.objects.filter(batch=batch).update(pi=1.0)
        drawn = set(Sample.objects.filter(batch=batch).values_list("target_id", flat=True))
        Sample.objects.bulk_create(
            Sample(batch=batch, target_id=pk, multiplicity=1, probability=1.0)
            for pk in self.world.target
            if pk not in drawn
        )

    def go_on(self, row: Submission) -> Submission:
        """The submission, judged until it is scored."""
        for _ in range(12):
            draw.tick()
            self.answer(row)
            score_track(self.toy.track, finished_submissions(self.toy.track))
            row.refresh_from_db()
            if row.status == "scored":
                plan.tick()
                return row
        raise AssertionError(f"still {row.status}")


class Seen:
    """All that is told of a submission at one moment."""

    def __init__(self, town: Town, row: Submission, *, is_news: bool = False) -> None:
        self.is_news = is_news
        client, track = Client(), row.track
        client.force_login(town.toy.users["Rosa"])
        token = Token.create_with_secret(town.toy.users["Rosa"], "test")[1]
        head = {"HTTP_AUTHORIZATION": f"Token {token}"}
        self.row = Submission.objects.get(pk=row.pk)
        self.api = client.get(f"/api/submissions/{row.pk}/", **head).json()
        self.page = client.get(reverse("submission", args=[row.pk]), follow=True).content.decode()
        self.text, self.lines = text_of(self.page), lines_of(self.page)
        self.team = lines_of(client.get(reverse("team", args=[row.team.slug])).content.decode())
        board = reverse("board", args=[track.slug])
        self.board = client.get(board).content.decode()
        self.csv = {
            (one["team"], one["system"]): one for one in rows_of(client, f"{board}board.csv")
        }.get((row.team.name, row.name))
        self.json = next(
            (
                one
                for one in client.get(reverse("api-board", args=[track.slug])).json()["systems"]
                if one["submission"] == row.pk
            ),
            None,
        )
        runs = rows_of(client, reverse("runs"), format="csv", team=row.team.slug)
        self.run = {int(one["id"]): one for one in runs}.get(row.pk)
        page = client.get(reverse("runs"), {"team": row.team.slug, "state": "all"})
        self.runs = text_of(page.content.decode())
        self.home = text_of(client.get(reverse("home")).content.decode())
        self.history = rows_of(client, reverse("submission", args=[row.pk]), format="csv")
        mails = Delivery.objects.filter(hook=None, address="Rosa@example.org").order_by("-pk")
        self.mail = str(mails[0].body) if mails else ""
        latest = track.evaluations.order_by("-number").first()
        self.number = latest.number if latest is not None else None

    def printed(self) -> str:
        """The guaranteed number as pages write it: “30.0 (28.6–31.4)” or “30.0 (all judged)”."""
        told = self.api["scores"][0]
        n = told["n_labels"]
        ends = interval_text(told["low80"], told["high80"], n=n)
        return f"{number_text(told['value'], n=n)} ({ends if self.half_width() else ALL_JUDGED})"

    def half_width(self) -> float | None:
        """Half of the interval of the guaranteed number, by its ends."""
        score = self.api["scores"][0] if self.api["scores"] else None
        if score is None or score["low80"] is None:
            return None
        return (score["high80"] - score["low80"]) / 2


def text_of(page: str) -> str:
    """What is read of a page, in one line."""
    page = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)).replace("\xa0", " "))


def rows_of(client: Client, address: str, **said: str) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    answer: Any = client.get(address, said)
    return list(csv.DictReader(io.StringIO(answer.getvalue().decode())))


def lines_of(page: str) -> dict[str, str]:
    """Name -> what stands beside it, of all lists of a page."""
    pairs = re.findall(r"<dt>(.*?)</dt>\s*<dd[^>]*>(.*?)</dd>", page, flags=re.S)
    return {text_of(name).strip(): text_of(value).strip() for name, value in pairs}


def contradictions(seen: Seen, when: str) -> list[str]:
    """What does not agree of all that is told at a moment: empty if every number that stands in
    several places is the same in all of them.
    """
    found = []
    for check in (_counts, _widths, _elsewhere, _money):
        try:
            check(seen)
        except (AssertionError, KeyError) as error:
            found.append(f"{when}: {check.__name__}: {error!r:.600}")
    return found


def _counts(seen: Seen) -> None:
    told, row = seen.api["judging"], seen.row
    drawn = Sample.objects.filter(batch__submission=row).values("target").distinct().count()
    assert told["sample"] == drawn == told["judged"] + told["open"] + told["unanswered"]
    assert told["labels"] == (seen.api["scores"][0]["n_labels"] if seen.api["scores"] else 0)
    if seen.row.confirmed_at is None:
        assert drawn == 0
        return
    for name, key in (
        ("Drawn for its own sample", "sample"),
        ("of these judged", "judged"),
        ("of these without an answer", "unanswered"),
        ("of these awaiting a judgment", "open"),
        ("Judged in total", "labels"),
    ):
        assert int(seen.lines.get(name, "0").replace(",", "")) == told[key], name
    if drawn:
        assert f"{told['judged']:,} of {drawn:,}" in seen.text
    journey = re.search(r"Being judged (.*?) Scored", seen.text)
    no_answer = re.findall(r"(\d+) have no answer", journey[1] if journey else "")
    if seen.row.status != "confirmed":  # then judging has not begun anew
        assert [int(one) for one in no_answer] == (
            [told["unanswered"]] if told["unanswered"] else []
        )
    assert told["labels"] >= told["judged"] or told["labels"] == 0
    if seen.csv is not None:
        assert int(seen.csv["labels"]) == told["labels"] == seen.json["precision"]["n_labels"]
        cell = re.search(
            rf'submissions/{row.pk}/".*?class="c-judged"[^>]*>([\d,]+)', seen.board, re.S
        )
        assert cell and int(cell[1].replace(",", "")) == told["labels"]


def _widths(seen: Seen) -> None:
    half, told = seen.half_width(), seen.api["judging"]["half_width"]
    assert told == half or told == pytest.approx(half)
    if seen.csv is not None:
        ends = [float(seen.csv[f"precision_{end}"]) for end in ENDS]
        assert ends == pytest.approx([seen.json["precision"][end] for end in ENDS])
        assert ends == pytest.approx([seen.api["scores"][0][end] for end in ENDS])
    now = re.findall(r"\b[Nn]ow ±([\d.]+)", seen.page)
    for width in now if seen.row.status == "scored" else ():
        assert float(width) == pytest.approx(100 * half, abs=0.06)
    offered = re.findall(r'data-half="±([\d.]+)[^"]*" data-n="([\d,]+)"', seen.page)
    for width, n in offered if seen.row.status == "scored" else ():
        assert float(width) < 100 * half, "narrower than what is printed"
        assert int(n.replace(",", "")) > 0, "nothing is sold for nothing"
    further = seen.api["further"]
    assert (
        {float(w) * 100 for w in further["options"]} == {float(w) for w, _ in offered}
        if (further)
        else not offered
    )


def _elsewhere(seen: Seen) -> None:
    """The list of runs, its file, the history, a comparison and the
    explorer; and what was mailed of a run that has just been scored.
    """
    told, counts = seen.api["scores"], seen.api["judging"]
    if seen.row.status == "judging":
        assert f"{counts['judged']:,} of {counts['sample']:,}" in seen.runs
    if seen.run is not None:
        assert Decimal(seen.run["spent"]) == balance(purpose=seen.row.purpose).spent
    if seen.csv is None:
        assert not seen.history
        return
    n = told[0]["n_labels"]
    ends = ["estimate", *ENDS[1:]]
    assert [float(seen.run[end]) for end in ends] == pytest.approx([told[0][end] for end in ENDS])
    assert int(seen.run["judged"]) == n
    assert [float(seen.history[-1][end]) for end in ENDS] == pytest.approx(
        [told[0][end] for end in ENDS]
    )
    for page in (seen.runs, seen.home, text_of(seen.board)):
        assert re.search(_beside(seen.printed()), page), (seen.printed(), page)
    if seen.mail and seen.is_news:
        assert seen.printed() in seen.mail


def _beside(printed: str) -> str:
    """A pattern for a number with what stands beside it, with and without brackets."""
    value, _, rest = printed.removesuffix(")").partition(" (")
    return rf"{re.escape(value)} \(?{re.escape(rest)}"


def _money(seen: Seen) -> None:
    sums = balance(purpose=seen.row.purpose)
    assert (seen.api["money"]["spent"], seen.api["money"]["reserved"]) == (
        str(sums.spent),
        str(sums.open),
    )
    if seen.row.confirmed_at is not None:
        assert seen.lines["Spent"] == f"${sums.spent:,}"
        paid = Ledger.objects.filter(
            kind="spend", **seen.row.purpose.filter_condition("purpose")
        ).count()
        assert int(seen.lines.get("Answers paid", "0").replace(",", "")) == paid
    team = balance(team=seen.row.team)
    assert seen.team["Spent on judgments"] == f"${team.spent:,}"
    spent = sum((one.amount for one in Ledger.objects.filter(kind="spend")), Decimal(0))
    facts = text_of(seen.board)
    assert f"{money_text(spent, cents=False)} spent on judgments" in facts
    assert f"{money_text(spent, cents=False)} spent on judgments" in seen.home
    told = facts + (seen.text if seen.row.confirmed_at else "")
    assert not re.search(r"\$[\d,.]+ paid|\bpaid for\b", told), "owed is not paid"


@pytest.mark.parametrize("design", ["poisson", pytest.param("iid", marks=pytest.mark.soak)])
def test_all_that_is_told_of_a_submission_agrees_at_every_moment(toy: Toy, design: str) -> None:
    town, rosa, wrong = Town(toy, design=design), toy.users["Rosa"], list[str]()
    told: dict[tuple[int, int], str] = {}
    """Evaluation, submission -> what everything printed of it while it was the latest"""
    row = town.world.upload("Patterns", range(N))

    def look(when: str, one: Submission = row) -> Seen:
        seen = Seen(town, one, is_news=when in ("scored", "scored again"))
        assert seen.mail or not seen.is_news
        wrong.extend(contradictions(seen, when))
        if seen.csv is not None and seen.number is not None:
            told[seen.number, one.pk] = seen.printed()
        return seen

    look("draft")
    confirm_plan(row, rosa)
    draw.tick()
    look("drawn")
    town.answer(row, 20, unanswered=3)
    score_track(toy.track)
    part = look("partly judged")
    assert (part.api["judging"]["judged"], part.api["judging"]["unanswered"]) == (17, 3)
    town.go_on(row)
    first = look("scored")
    assert first.csv is not None and "all judged" not in text_of(first.board)

    other = town.world.upload("Patterns", range(0, N, 2))
    confirm_plan(other, rosa)
    town.go_on(other)
    narrower = look("after others' judgments, with the offer from before")
    assert narrower.half_width() < first.half_width()

    offer = current_order_offer(row)
    assert offer is not None, "something narrower can be ordered"
    order_judgments(row, rosa, half_width=max(offer.plan["options"]))
    look("ordered more")
    town.go_on(row)
    look("scored again")
    assert len({number for number, _ in told}) >= 3
    for (number, one), printed in told.items():
        page = Client().get(reverse("evaluation", args=[toy.track.slug, number]))
        cells = re.search(rf'submissions/{one}/".*?</tr>', page.content.decode(), re.S)
        assert cells and re.search(_beside(printed), text_of(cells[0])), (number, one, printed)
    assert not wrong, "\n".join(wrong)


def test_where_all_is_judged_nothing_is_sold(toy: Toy) -> None:
    town = Town(toy, 24)
    row = town.world.upload("Patterns", range(24))
    confirm_plan(row, toy.users["Rosa"])
    draw.tick()
    town.ask_all(row)
    town.go_on(row)
    seen = Seen(town, row)
    assert not contradictions(seen, "all judged")
    counts = {"sample": 24, "judged": 24, "open": 0, "unanswered": 0, "labels": 24}
    assert seen.api["judging"] == counts | {"half_width": 0.0}
    assert seen.api["further"] is None and "data-slider-order" not in seen.page
    assert "All is judged; nothing can be narrowed." in seen.text
    assert seen.csv is not None and seen.csv["note"] == seen.json["precision"]["note"]
    assert seen.csv["note"] == no_width_text()
    assert "all judged" in text_of(seen.board)
