"""Over HTTP: a team reads what was judged for others of what it predicts once its own sample is
answered, not before; and never of a run that it takes back before.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from kbpo.accounts.models import Token
from kbpo.evaluation.models import Flip
from kbpo.evaluation.run import evaluate
from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel, record
from kbpo.sampling import draw
from kbpo.sampling.confirm import confirm
from kbpo.sampling.models import Further
from kbpo.sampling.order import CannotOrder, order
from kbpo.submissions.models import Submission
from kbpo.submissions.withdraw import withdraw
from tests.conftest import Toy
from tests.evaluation.replay import Replay

pytestmark = pytest.mark.django_db
N = 240


def ask(row: Submission, name: str) -> Any:
    """What the API answers the one who uploaded a run."""
    assert row.user is not None
    headers = {"Authorization": f"Token {Token.issue(row.user, 'test')[1]}"}
    chosen = {"limit": 500, "verdict": "judged"} if name == "api-predictions" else {}
    return Client().get(reverse(name, args=[row.pk]), chosen, headers=headers)


def listed(row: Submission) -> set[int]:
    """The predictions whose judgments the API tells; none where it refuses."""
    answer = ask(row, "api-predictions")
    if answer.status_code == 404:
        return set()
    assert answer.status_code == 200
    return {one["prediction"] for one in answer.json()["results"]}


def on_page(client: Client, row: Submission) -> int:
    """How many judged predictions its page counts."""
    answer = client.get(reverse("submission-explore", args=[row.pk]))
    return judged_of(answer) if answer.status_code == 200 else 0


def judged_of(answer: Any) -> int:
    """The number beside the filter “Judged”."""
    [verdict] = [one for one in answer.context["filters"] if one["label"] == "Verdict"]
    [n] = [one["n"] for one in verdict["options"] if one["text"] == "Judged"]
    return int(n)


def predictions(row: Submission, world: Replay, targets: Any) -> set[int]:
    rows = row.predictions.filter(instance__target__in=targets)
    return set(rows.values_list("pk", flat=True))


def test_others_judgments_are_read_once_the_own_sample_is_answered(
    toy: Toy, client: Client
) -> None:
    world, _ = Replay.judged(toy, N, 0.5)
    of_others = set(
        Label.objects.filter(target__in=world.target).values_list("target_id", flat=True)
    )
    client.force_login(toy.users["Tim"])
    rows = [world.upload("Neural", range(10, N)) for _ in range(2)]
    for row in rows:
        assert not listed(row) and not on_page(client, row), "a draft shows nothing"
        confirm(row, toy.users["Tim"])
    draw.tick()
    read, taken_back = rows
    assert not listed(read) and not on_page(client, read)
    page = client.get(reverse("submission", args=[read.pk])).content.decode()
    assert "once its own sample is answered" in page
    assert ask(read, "api-submission").json()["turned"] == []
    world.answer(3)
    new = (
        set(Label.objects.filter(target__in=world.target).values_list("target_id", flat=True))
        - of_others
    )
    assert len(new) == 3
    own = predictions(read, world, new)
    assert listed(read) == own and on_page(client, read) == len(own)
    withdraw(Submission.objects.get(pk=taken_back.pk))
    assert not listed(taken_back) and not on_page(client, taken_back)
    world.until_scored(read)
    everything = set(
        Label.objects.filter(target__in=world.target).values_list("target_id", flat=True)
    )
    assert listed(read) == predictions(read, world, everything)
    assert listed(read) >= predictions(read, world, of_others)
    assert not listed(taken_back)


def test_what_others_are_paying_for_is_not_read_either(toy: Toy) -> None:
    """Two runs wait for the same answers: they are the first one's until both are answered."""
    world = Replay.of(toy, N, 0.5)
    first, second = world.upload("Patterns", range(N)), world.upload("Neural", range(N))
    confirm(first, toy.users["Rosa"])
    draw.tick()
    confirm(second, toy.users["Tim"])
    draw.tick()
    world.answer(5)
    assert len(listed(first)) == 5
    assert not listed(second)


def test_no_number_tells_what_was_judged_for_others_before_the_own_sample_is_answered(
    toy: Toy, client: Client
) -> None:
    """Of a run of what others have paid for there is nothing by slice and nothing for sale, and of
    the scores only the guaranteed one, once ten judgments came for the run itself.
    """
    world, _ = Replay.judged(toy, N, 0.5)
    known = set(Label.objects.filter(target__in=world.target).values_list("target", flat=True))
    asked = [at for at, pk in enumerate(world.target) if pk in known]
    new = [at for at, pk in enumerate(world.target) if pk not in known]
    row = world.upload("Neural", asked[:20] + new)
    client.force_login(toy.users["Tim"])
    address = reverse("submission", args=[row.pk])

    def told() -> tuple[Any, Any]:
        answer = ask(row, "api-submission").json()
        page = client.get(address)
        explored = client.get(reverse("submission-explore", args=[row.pk]))
        assert ask(row, "api-slices").json()["slices"] == []
        assert not page.context["slices"]["rows"] and not explored.context["slices"]["rows"]
        assert answer["further"] is None and not Further.objects.filter(submission=row).exists()
        assert "is told once this is judged" in page.content.decode()
        lines = client.get(reverse("submission-looks", args=[row.pk])).content.decode()
        return answer, [line.split(",") for line in lines.splitlines()[1:]]

    confirm(row, toy.users["Tim"])
    draw.tick()
    evaluate(toy.track)
    latest = toy.track.evaluations.order_by("-number")[0]
    assert latest.estimates.filter(submission=row, value__isnull=False).exclude(slice="").exists()
    answer, looked = told()
    assert [one["value"] for one in answer["scores"]] == [None] and not looked
    assert answer["judging"]["half_width"] is None
    world.answer(60)
    evaluate(toy.track)
    answer, looked = told()
    [score] = answer["scores"]
    assert (score["criterion"], score["distribution"]) == ("relation", "instance")
    assert float(looked[-1][3]) == score["value"] == round(score["value"], 3)
    assert [float(one) for one in looked[-1][4:6]] == [score["low80"], score["high80"]]
    page = client.get(address)
    assert len(page.context["tables"]) == len(page.context["tables"][0]["rows"]) == 1
    with pytest.raises(CannotOrder, match="once it is scored"):
        order(row, toy.users["Tim"], half_width="0.030")
    taken_back = withdraw(Submission.objects.get(pk=row.pk))
    assert len(ask(taken_back, "api-submission").json()["scores"]) == 1
    assert ask(taken_back, "api-slices").json()["slices"] == []
    Submission.objects.filter(pk=row.pk).update(status="judging")
    row.refresh_from_db()
    world.until_scored(row)
    assert ask(row, "api-slices").json()["slices"]
    assert len(ask(row, "api-submission").json()["scores"]) > 1
    assert client.get(address).context["slices"]["rows"]


def test_no_flip_and_no_document_tells_what_was_judged_for_others_before_that(
    toy: Toy, client: Client
) -> None:
    """A verdict that turned for a run on the board is told to nobody else who predicts the same,
    nor what people said of it on the page of its document, until their own sample is answered.
    """
    world, first = Replay.judged(toy, N, 0.5)
    known = Label.objects.filter(target__in=world.target).exclude(value={}).order_by("pk")
    [label, *_] = known
    at = world.target.index(label.target_id)
    row = world.upload("Neural", [at, *(set(range(N)) - {at})])
    confirm(row, toy.users["Tim"])
    draw.tick()
    shown, held = label.value["shown"], label.value["holds"]
    turned = {"shown": shown, "holds": [] if held else shown}
    record([NewLabel(label.target_id, turned, "crowd", "majority", 9, "question:9")])
    evaluate(toy.track)
    assert {*Flip.objects.values_list("submission", flat=True)} == {first.pk, row.pk}
    address = reverse("track-document", args=[toy.track.slug, world.documents[at % 8].key])

    def told(of: Submission, name: str) -> tuple[int, int, int, int]:
        """Verdicts that turned by the API (under two criteria), its page and its explorer, and
        claims that the page of the document tells judged.
        """
        client.force_login(toy.users[name])
        page = client.get(reverse("submission", args=[of.pk]))
        listing = client.get(reverse("submission-explore", args=[of.pk]), {"verdict": "turned"})
        judged = [claim.is_judged for claim, _ in client.get(address).context["claims"]]
        return (
            len(ask(of, "api-submission").json()["turned"]),
            page.context["n_turned"],
            listing.content.decode().count('class="x-claim"'),
            sum(judged),
        )

    assert told(first, "Rosa")[:3] == (2, 1, 1)
    assert told(row, "Tim") == (0, 0, 0, 0)
    Submission.objects.filter(pk=row.pk).update(status="scored")
    row.refresh_from_db()
    assert told(row, "Tim")[:3] == (2, 1, 1) and told(row, "Tim")[3] > 1
