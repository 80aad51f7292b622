"""One number has one source: what pages, files and the API tell of a submission agrees, from its
draft until experts have checked it.
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any
from unittest.mock import patch

import httpx
import pytest
from click.testing import CliRunner
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from annotation.desk.experts import store
from annotation.models import HIT, Assignment, Comparison, Gold, Question, Response, Worker
from annotation.quality.reliability import NOT_KEPT
from kbpo import clock
from kbpo.accounts.models import MEMBER_OF, Delivery, Token
from kbpo.evaluation.correction.checkable import frame_of
from kbpo.evaluation.data import read
from kbpo.evaluation.due import finished
from kbpo.evaluation.run import evaluate
from kbpo.experts.draw import draw_round
from kbpo.experts.queue import take
from kbpo.instances.models import Target
from kbpo.instances.record import NewLabel, record
from kbpo.money.models import Ledger
from kbpo.money.purpose import Purpose
from kbpo.money.spend import Bill, balance, reserve, spend_all
from kbpo.sampling import distribution, draw
from kbpo.sampling.confirm import confirm
from kbpo.sampling.models import Further, Sample, Threshold
from kbpo.sampling.order import offer_of, order
from kbpo.submissions.models import Submission
from kbpo.submissions.withdraw import withdraw
from kbpo.tracks.kbp.words import WORDS
from kbpo.tracks.models import Track
from kbpo.web.components.figures import money_text
from kbpo.web.public.judges import CORRECTED, of_submission
from scoring.report import Figure, Judges
from scoring.words import ALL_JUDGED, interval_text, no_width_text, number_text
from tests.client.conftest import main as command_line
from tests.conftest import Toy
from tests.evaluation.replay import PART, Replay
from tests.web.scored import make_study

As = Callable[[str], Client]
pytestmark = pytest.mark.django_db
N = 400
ENDS = ("value", "low80", "high80", "low95", "high95")


def _answer(request: httpx.Request) -> httpx.Response:
    """What the service answers a request of the client, in this process."""
    head = {
        f"HTTP_{name.upper().replace('-', '_')}": said for name, said in request.headers.items()
    }
    told = Client().generic(request.method, request.url.raw_path.decode(), request.read(), **head)
    return httpx.Response(told.status_code, headers=dict(told.items()), content=told.content)


HERE = partial(httpx.Client, transport=httpx.MockTransport(_answer))


class Town:
    """A world whose judgments cost money and whose people differ: every fourth target has two
    answers against one.
    """

    def __init__(self, toy: Toy, n: int = N, *, design: str = "poisson") -> None:
        self.toy, self.world = toy, Replay.of(toy, n, 0.5, design=design)
        make_study(toy.track, toy.teams["Patterns"])
        for name in ("Rosa", "Tim"):
            toy.users[name].email = f"{name}@example.org"
            toy.users[name].save(update_fields=["email"])
        self.tokens = {
            name: Token.issue(toy.users[name], "test", days=1)[1] for name in ("Rosa", "Tim")
        }

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
        record(labels)
        assert not any(spend_all(self.toy.track, bills))

    def ask_all(self, row: Submission) -> None:
        """All that a submission predicts is drawn, with certainty."""
        reserve(self.toy.track, row.team, row.purpose, Decimal("9"), key="all")
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
            evaluate(self.toy.track, finished(self.toy.track))
            row.refresh_from_db()
            if row.status == "scored":
                distribution.tick()
                return row
        raise AssertionError(f"still {row.status}")

    def check(self, budget: int) -> None:
        """An expert checks that many judgments, and finds them right, but for every fifth."""
        admin, track = self.toy.users["Admin"], self.toy.track
        draw_round(track, frame_of(track, read(track)), budget, admin)
        number = 0
        while (check := take(track, admin)) is not None:
            number += 1
            pair = Target.objects.get(pk=check.target_id)
            true = self.world.true[self.world.target.index(pair.pk)] ^ (number % 5 == 0)
            said: dict[int, Any] = {pair.pk: {"shown": [PART], "holds": [PART] if true else []}}
            mentions = Target.objects.filter(document=pair.document, kind="mention")
            for begin, end in ((pair.a_begin, pair.a_end), (pair.b_begin, pair.b_end)):
                one = mentions.get(a_begin=begin, a_end=end)
                said[one.pk] = {"canonical": [begin, end]}
            store(check, admin, {}, said)
        evaluate(track)


class Seen:
    """All that is told of a submission at one moment."""

    def __init__(
        self, town: Town, row: Submission, who: str = "Rosa", *, is_news: bool = False
    ) -> None:
        self.is_news = is_news
        client, track = Client(), row.track
        client.force_login(town.toy.users[who])
        head = {"HTTP_AUTHORIZATION": f"Token {town.tokens[who]}"}
        self.row = Submission.objects.get(pk=row.pk)
        self.api = client.get(f"/api/submissions/{row.pk}/", **head).json()
        self.page = client.get(reverse("submission", args=[row.pk]), follow=True).content.decode()
        self.text = text_of(self.page)
        self.lines = lines_of(self.page)
        self.team = lines_of(client.get(reverse("team", args=[row.team.slug])).content.decode())
        board = reverse("board", args=[track.slug])
        self.board = client.get(board).content.decode()
        self.csv = {
            (one["team"], one["system"]): one
            for one in csv.DictReader(io.StringIO(client.get(f"{board}board.csv").content.decode()))
        }.get((row.team.name, row.name))
        told = client.get(f"{board}board.json").json()
        self.whole = told
        runs = (
            client.get(reverse("runs"), {"format": "csv", "team": row.team.slug})
            .getvalue()
            .decode()
        )
        self.run = {int(one["id"]): one for one in csv.DictReader(io.StringIO(runs))}.get(row.pk)
        page = client.get(reverse("runs"), {"team": row.team.slug, "state": "all"})
        self.runs = text_of(page.content.decode())
        self.embed = text_of(client.get(reverse("board-embed", args=[track.slug])).content.decode())
        address = reverse("submission-explore", args=[row.pk])
        self.explorer = text_of(client.get(address, {"verdict": "judged"}).content.decode())
        history = (
            client.get(reverse("submission", args=[row.pk]) + "?format=csv").getvalue().decode()
        )
        self.history = list(csv.DictReader(io.StringIO(history)))
        others = [one["submission"] for one in told["systems"] if one["submission"] != row.pk]
        pair = {"a": row.pk, "b": others[0]} if others else {}
        compared = client.get(reverse("compare-track", args=[track.slug]), pair)
        self.compared = text_of(compared.content.decode()) if others else ""
        mails = Delivery.objects.filter(hook=None, address=f"{who}@example.org").order_by("-pk")
        self.mail = str(mails[0].body) if mails else ""
        self.json = _of(row, told)
        self.track = client.get(reverse("track", args=[track.slug])).content.decode()
        self.tracks = text_of(client.get(reverse("tracks")).content.decode())
        self.home = text_of(client.get(reverse("home")).content.decode())
        shell = partial(self._shell, town.tokens[who], "scores", track.slug)
        self.shell, self.shell_json = shell(), json.loads(shell("--json"))
        latest = track.evaluations.order_by("-number").first()
        self.number = latest.number if latest is not None else None
        self.past, self.past_json = "", dict[str, Any]()
        if self.number is not None:
            self.past = text_of(past_page(track, self.number))
            self.past_json = json.loads(shell("--json", "--evaluation", str(self.number)))
        desk = Client()
        desk.force_login(town.toy.users["Admin"])
        page = desk.get(reverse("desk-track", args=[track.slug])).content.decode()
        self.desk_track = lines_of(page)
        self.desk = text_of(desk.get(reverse("desk")).content.decode())
        money = desk.get(reverse("desk-money"), {"track": track.slug})
        self.desk_money = text_of(money.content.decode())

    def _shell(self, token: str, *words: str) -> str:
        """What a command of the client prints."""
        with patch.object(httpx, "Client", HERE):
            done = CliRunner().invoke(
                command_line, ["--url", "http://testserver", "--token", token, *words]
            )
        assert done.exit_code == 0, done.output
        return done.stdout

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


def _of(row: Submission, board: dict[str, Any]) -> Any:
    """What a board tells of a submission."""
    return next((one for one in board["systems"] if one["submission"] == row.pk), None)


def past_page(track: Track, number: int) -> str:
    """The page of an evaluation, by its permanent address."""
    return Client().get(reverse("evaluation", args=[track.slug, number])).content.decode()


def people_answer(track: Track, targets: list[int]) -> None:
    """Two people say the same of one question, differ on another, and one of them errs on gold."""
    names = [f"worker {one}" for one in "ab"]
    who = [Worker.objects.get_or_create(platform="pool", handle=name)[0] for name in names]
    for name, target, said in zip(
        ("same", "differ", "gold"), targets, ("yy", "yn", "yn"), strict=True
    ):
        question = Question.objects.create(
            track=track,
            target_id=target,
            interface="relation",
            status="gold" if name == "gold" else "settled",
            payload={"predicates": [{"part": PART}], "a": {}, "b": {}},
            order=0.5,
            payer=Purpose("pilot", 1),
            price=Decimal("0.06"),
            reward=Decimal("0.05"),
        )
        hit = HIT.objects.create(status="closed", track=track, platform="pool", reward=0)
        hit.questions.add(question)
        if name == "gold":
            Gold.objects.create(question=question, expected=[])
        for worker, one in zip(who, said, strict=True):
            answer = Assignment.objects.create(
                hit=hit,
                worker=worker,
                status="approved",
                leased_until=clock.now(),
                submitted_at=clock.now(),
                raw={},
            )
            Response.objects.create(
                assignment=answer,
                question=question,
                target_id=target,
                criterion="relation",
                value={"shown": [PART], "holds": [PART] if one == "y" else []},
            )
            if name == "gold":
                Comparison.objects.create(assignment=answer, kind="gold", against=one == "n")


def text_of(page: str) -> str:
    """What is read of a page, in one line."""
    page = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)).replace("\xa0", " "))


def lines_of(page: str) -> dict[str, str]:
    """Name -> what stands beside it, of all lists of a page."""
    pairs = re.findall(r"<dt>(.*?)</dt>\s*<dd[^>]*>(.*?)</dd>", page, flags=re.S)
    return {text_of(name).strip(): text_of(value).strip() for name, value in pairs}


def contradictions(seen: Seen, when: str) -> list[str]:
    """What does not agree of all that is told at a moment: empty if every number that stands in
    several places is the same in all of them.
    """
    found = []
    for check in (_counts, _widths, _elsewhere, _further, _money, _judges):
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
        ("of these waiting for one", "open"),
        ("Judged in all", "labels"),
    ):
        assert int(seen.lines.get(name, "0").replace(",", "")) == told[key], name
    if drawn:
        assert f"{told['judged']:,} of {drawn:,}" in seen.text
    journey = re.search(r"Being judged (.*?) Scored", seen.text)
    no_answer = re.findall(r"(\d+) found no answer", journey[1] if journey else "")
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
    """The list of runs, its file, the history, the embedded board, a comparison and the
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
    value = number_text(told[0]["value"], n=n)
    for page in (seen.runs, seen.embed, seen.home, text_of(seen.board)):
        assert re.search(_beside(seen.printed()), page), (seen.printed(), page)
    if seen.compared:
        assert f" {value} " in seen.compared
        assert (
            "A judgment that decides about predictions in two parts counts in both" in seen.compared
        )
    if seen.row.status == "scored":
        assert f"{n:,} of " in seen.explorer, seen.explorer[:400]
        assert "a score counts one judgment of several once" in seen.explorer
    if seen.mail and seen.is_news:
        assert seen.printed() in seen.mail


def _beside(printed: str) -> str:
    """A pattern for a number with what stands beside it, with and without brackets."""
    value, _, rest = printed.removesuffix(")").partition(" (")
    return rf"{re.escape(value)} \(?{re.escape(rest)}"


def _further(seen: Seen) -> None:
    """The page of its track, the list of tracks, the client, and the evaluation's own address."""
    texts = re.search(r"([\d,]+) documents", text_of(seen.board))
    assert texts and f" {texts[1]} documents" in text_of(seen.track)
    assert f"{texts[1]}, " in seen.tracks or f" {texts[1]} " in seen.tracks
    assert seen.shell_json == seen.whole
    if seen.csv is None:
        assert seen.row.full_name not in seen.past
        return
    printed = seen.printed()
    mine = re.search(rf'submissions/{seen.row.pk}/">.*?</tr>', seen.track, re.S)
    assert mine and re.search(_beside(printed), text_of(mine[0])), (printed, mine)
    [line] = [one for one in seen.shell.splitlines() if re.search(rf" {seen.row.pk}  ", one)]
    assert printed in line, (printed, line)
    assert re.search(_beside(printed), seen.past), (printed, seen.past)
    past = _of(seen.row, seen.past_json)
    assert past is not None
    for end in (*ENDS, "n_labels"):
        assert past["precision"][end] == seen.json["precision"][end], end
    assert past["rank"] == seen.json["rank"]


def _money(seen: Seen) -> None:
    sums = balance(purpose=seen.row.purpose)
    assert (seen.api["money"]["spent"], seen.api["money"]["reserved"]) == (
        str(sums.spent),
        str(sums.open),
    )
    if seen.row.confirmed_at is not None:
        assert seen.lines["Spent"] == f"${sums.spent:,}"
        paid = Ledger.objects.filter(kind="spend", **seen.row.purpose.at("purpose")).count()
        assert int(seen.lines.get("Answers paid", "0").replace(",", "")) == paid
    team = balance(team=seen.row.team)
    assert seen.team["Spent on judgments"] == f"${team.spent:,}"
    spent = sum((one.amount for one in Ledger.objects.filter(kind="spend")), Decimal(0))
    facts = text_of(seen.board)
    assert f"{money_text(spent, cents=False)} spent on judgments" in facts
    assert f"{money_text(spent, cents=False)} spent on judgments" in seen.home
    track = balance(track=seen.row.track)
    assert track.spent == spent
    assert (seen.desk_track["Spent"], seen.desk_track["Set aside"]) == (
        money_text(track.spent),
        money_text(track.open),
    )
    assert f"Spent in all {money_text(spent)} " in seen.desk
    assert f" {money_text(track.open)} set aside " in seen.desk
    assert f" {money_text(track.spent)} spent " in seen.desk_money
    assert f" {money_text(track.open)} set aside now " in seen.desk_money
    told = facts + (seen.text if seen.row.confirmed_at else "")
    assert not re.search(r"\$[\d,.]+ paid|\bpaid for\b", told), "owed is not paid"


def _judges(seen: Seen) -> None:
    told = seen.api["judges"]
    if not seen.api["scores"]:
        return
    said = re.search(r"Of the ([\d,]+) answers behind its score ([\d.]+) % agree", seen.text)
    assert said and int(said[1].replace(",", "")) == told["answers"]
    assert float(said[2]) == pytest.approx(100 * told["agreement"], abs=0.051)
    if seen.csv is not None:
        assert seen.json["judges"] == told
        kept = {name: float(seen.csv[name]) for name in told if told[name] is not None}
        assert kept == pytest.approx({name: told[name] for name in kept})
        assert not [name for name in told if told[name] is None and seen.csv[name]]
        whole = seen.whole["evaluation"]["judges"]
        assert f"Of the {whole['answers']:,} answers about what these systems" in text_of(
            seen.board
        )
    people = [f"people on this track agree by Fleiss’ κ = {told['kappa'] or 0:.2f}."]
    people.append(
        f"Of their {told['gold_answers']} answers to questions whose answer is known"
        f" {100 * (told['gold_error'] or 0):.1f} % were wrong."
    )
    for key, sentence in zip(("kappa", "gold_error"), people, strict=True):
        assert (sentence in seen.text) == (told[key] is not None), sentence
        if seen.csv is not None:
            assert whole[key] == told[key]
            assert (sentence in text_of(seen.board)) == (told[key] is not None), sentence
    if told["checked"]:
        corrected = next(s for s in seen.api["scores"] if s["method"] == "expert")
        assert corrected["n_checked"] == told["checked"]
        assert f"An expert checked {told['checked']} of these judgments" in seen.text
        assert f"the crowd alone says {100 * seen.api['scores'][0]['value']:.1f}" in seen.text
    else:
        assert "No expert has checked any of these judgments yet." in seen.text


@pytest.mark.parametrize("design", ["poisson", pytest.param("iid", marks=pytest.mark.soak)])
def test_all_that_is_told_of_a_submission_agrees_at_every_moment(toy: Toy, design: str) -> None:
    town, rosa, wrong = Town(toy, design=design), toy.users["Rosa"], list[str]()
    told: dict[tuple[int, int], str] = {}
    """Evaluation, submission -> what everything printed of it while it was the latest"""
    row = town.world.upload("Patterns", range(N))

    def look(when: str, one: Submission = row, who: str = "Rosa") -> Seen:
        seen = Seen(town, one, who, is_news=when in ("scored", "scored again"))
        assert seen.mail or not seen.is_news
        wrong.extend(contradictions(seen, f"{when}, {who}"))
        if seen.csv is not None and seen.number is not None:
            told[seen.number, one.pk] = seen.printed()
        return seen

    look("draft")
    confirm(row, rosa)
    look("confirmed")
    draw.tick()
    look("drawn")
    town.answer(row, 20, unanswered=3)
    evaluate(toy.track)
    part = look("partly judged")
    assert (part.api["judging"]["judged"], part.api["judging"]["unanswered"]) == (17, 3)
    town.go_on(row)
    first = look("scored")
    assert first.csv is not None and "all judged" not in text_of(first.board)

    other = town.world.upload("Patterns", range(0, N, 2))
    confirm(other, rosa)
    town.go_on(other)
    look("scored", other)
    narrower = look("after others' judgments, with the offer from before")
    Further.objects.all().delete()
    distribution.tick()
    look("after others' judgments")
    assert narrower.half_width() < first.half_width()

    offer = offer_of(row)
    assert offer is not None, "something narrower can be ordered"
    order(row, rosa, half_width=max(offer.plan["options"]))
    look("ordered more")
    draw.tick()
    look("drawn more")
    town.go_on(row)
    look("scored again")
    town.check(60)
    assert look("checked by experts").api["judges"]["checked"] >= 10
    look("checked by experts", other)
    people_answer(toy.track, town.world.target[:3])
    cache.clear()
    known = look("people known").api["judges"]
    assert (known["kappa"], known["gold_answers"], known["gold_error"]) == (
        pytest.approx(-1 / 3),
        2,
        0.5,
    )
    look("people known", other)
    assert len({number for number, _ in told}) >= 4
    for (number, one), printed in told.items():
        cells = re.search(rf'submissions/{one}/".*?</tr>', past_page(toy.track, number), re.S)
        assert cells and re.search(_beside(printed), text_of(cells[0])), (number, one, printed)
    assert not wrong, "\n".join(wrong)


def test_a_run_s_page_reads_what_the_latest_evaluation_says_once(
    toy: Toy, django_assert_max_num_queries: Any
) -> None:
    town = Town(toy)
    row = town.world.upload("Patterns", range(N))
    confirm(row, toy.users["Rosa"])
    draw.tick()
    town.go_on(row)
    for who, most in (("Rosa", 52), ("Tim", 24)):
        reader = Client()
        reader.force_login(toy.users[who])
        address = reverse("submission", args=[row.pk])
        reader.get(address)
        with django_assert_max_num_queries(most) as asked:
            assert reader.get(address).status_code == 200
        texts = [one["sql"] for one in asked.captured_queries]
        # The evaluation with its report, then its details, for slices.
        for table, n in (('SELECT "evaluation_evaluation"', 2), (MEMBER_OF.name, 1)):
            assert len([text for text in texts if table in text]) == n, table


def test_where_all_is_judged_nothing_is_sold_and_the_judges_error_is_named(toy: Toy) -> None:
    town = Town(toy, 24)
    row = town.world.upload("Patterns", range(24))
    confirm(row, toy.users["Rosa"])
    draw.tick()
    town.ask_all(row)
    town.go_on(row)
    seen = Seen(town, row)
    assert not contradictions(seen, "all judged")
    assert seen.api["judging"] == {
        "sample": 24,
        "judged": 24,
        "open": 0,
        "unanswered": 0,
        "labels": 24,
        "half_width": 0.0,
    }
    assert seen.api["further"] is None and "data-slider-order" not in seen.page
    assert "All is judged: there is no sampling error left to narrow." in seen.text
    assert seen.text.count(no_width_text()) == 2, "as the end, and beside the number"
    assert "a little wider" not in seen.text, "nothing is wider than no width"
    assert "For this system it says 50.0 %, the judgments make that 41.7 %" in seen.text
    assert "more for ±10" not in seen.text
    assert seen.csv is not None and seen.csv["note"] == seen.json["precision"]["note"]
    assert seen.csv["note"] == no_width_text()
    assert no_width_text() == "All judged: no sampling error; the judges’ remains."
    board = text_of(seen.board)
    assert "all judged" in board
    assert "“All judged” means: no sampling error; the judges’ remains." in board


def test_a_run_that_was_withdrawn_waits_for_no_score(toy: Toy) -> None:
    town = Town(toy, 24)
    row = town.world.upload("Patterns", range(24))
    confirm(row, toy.users["Rosa"])
    draw.tick()
    town.answer(row, 12)
    withdraw(row, toy.users["Rosa"])
    evaluate(toy.track)
    text = Seen(town, row).text
    assert "It is withdrawn, so it has no score." in text
    assert "being reckoned" not in text and "the final one stands above" not in text


def test_a_board_tells_what_was_judged_for_other_tracks_of_its_texts(toy: Toy) -> None:
    town = Town(toy, 12)
    other = Track.objects.create(corpus=toy.corpus, name="Another", slug="another", status="open")
    people_answer(toy.track, town.world.target[:3])
    people_answer(other, town.world.target[2:5])
    for question in Question.objects.all():
        value = {"shown": [PART], "holds": []}
        record(
            [
                NewLabel(
                    question.target_id,
                    value,
                    "crowd",
                    "majority",
                    2,
                    f"q{question.pk}",
                    question=question.pk,
                )
            ]
        )
    told = {
        slug: text_of(Client().get(reverse("board", args=[slug])).content.decode())
        for slug in ("toy", "another")
    }
    here = "5 relations judged one by one, each by 2 people, and a third where they differ"
    for text in told.values():
        assert f"{here}; 3 for this track, 2 for other tracks of these documents" in text, text[
            :900
        ]
    apart = Question.objects.filter(track=other).exclude(target=town.world.target[2])
    assert apart.update(track=toy.track) == 2
    board = text_of(Client().get(reverse("board", args=["toy"])).content.decode())
    assert f"{here} $" in board


def test_where_experts_checked_all_that_is_judged_nothing_of_the_crowd_is_said_to_remain() -> None:
    crowd = Figure(
        value=0.4, low80=0.4, high80=0.4, low95=0.4, high95=0.4, n_labels=24, note=no_width_text()
    )
    experts = replace(crowd, n_checked=24, note=no_width_text(24))
    told = of_submission(Judges(), NOT_KEPT, crowd, corrected=experts, checked=True, words=WORDS)
    assert told[:2] == [no_width_text(), no_width_text(24)]
    some = replace(experts, low80=0.3, low95=0.2, n_checked=9)
    told = of_submission(Judges(), NOT_KEPT, crowd, corrected=some, checked=True, words=WORDS)
    assert told[:2] == [no_width_text(), CORRECTED]
