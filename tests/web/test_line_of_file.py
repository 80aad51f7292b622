"""The line of a file that states a prediction is shown as it stands there, to those who may have
the file alone.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from formats.limits import Limits
from formats.opening import CHUNK, line_at
from kbpo.submissions.models import Submission
from kbpo.web.research.line import CUT, MOST, READING
from tests.conftest import Toy
from tests.web.test_desk_pages import judged
from tests.web.test_explore import client_of, header_of

pytestmark = pytest.mark.django_db
__all__ = ["judged"]
PEOPLE = {"": 404, "Tim": 404, "Ada": 404, "Rosa": 200, "Admin": 200}


def asked(toy: Toy, name: str, row: Submission, prediction: int) -> tuple[Any, Any]:
    """What somebody is answered by the page and by the API."""
    client = client_of(toy, name) if name else Client()
    headers = header_of(toy, name) if name else {}
    args = [row.pk, prediction]
    return (
        client.get(reverse("submission-line", args=args)),
        Client().get(reverse("api-line", args=args), headers=headers),
    )


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_team_reads_the_line_with_its_own_ids(
    judged: Submission, toy: Toy, pack: Callable[[bytes], bytes]
) -> None:
    path = Path(judged.file.path)
    lines = [f":E{at}\tper:spouse\t:Entity_{at}\td1:0-9\t0.9" for at in range(100)]
    path.write_bytes(pack("\n".join(lines).encode()))
    for prediction in judged.predictions.order_by("pk")[:3]:
        page, api = asked(toy, "Rosa", judged, prediction.pk)
        line = lines[prediction.line - 1]
        assert page.content.decode() == f"{line}\n"
        assert page["Content-Type"] == "text/plain; charset=utf-8"
        assert api.json() == {
            "prediction": prediction.pk,
            "line": prediction.line,
            "text": line,
            "is_cut": False,
        }


def test_nobody_else_reads_it_nor_is_offered_it(judged: Submission, toy: Toy) -> None:
    first = judged.predictions.order_by("pk")[0].pk
    judged.track.status = "closed"
    judged.track.save()
    judged.scored_at = judged.sampled_at
    judged.move("scored")
    for name, status in PEOPLE.items():
        page, api = asked(toy, name, judged, first)
        assert page.status_code == status, name
        assert api.status_code == (status if name else 401), name
        client = client_of(toy, name) if name else Client()
        explored = client.get(reverse("submission-explore", args=[judged.pk]), {"p": first})
        offered = "data-line" in explored.content.decode()
        assert offered is (status == 200), (name, explored.status_code)


def test_a_long_line_is_cut_and_says_so(judged: Submission, toy: Toy) -> None:
    prediction = judged.predictions.order_by("pk")[0]
    before = b"\n" * (prediction.line - 1)
    Path(judged.file.path).write_bytes(before + "é".encode() * 200_000 + b"\nnext")
    page, api = asked(toy, "Rosa", judged, prediction.pk)
    assert page.content.decode() == f"{'é' * MOST}\n{CUT}\n"
    assert api.json()["text"] == "é" * MOST and api.json()["is_cut"] is True


def test_what_cannot_be_read_is_said_in_a_sentence(judged: Submission, toy: Toy) -> None:
    prediction = judged.predictions.order_by("pk")[0]
    path = Path(judged.file.path)
    path.write_bytes(b"")
    for predicted, sentence in (
        (prediction.pk, f"Line {prediction.line} of the file cannot be read."),
        (2**40, "This submission has no such prediction."),
    ):
        page, api = asked(toy, "Rosa", judged, predicted)
        assert page.status_code == api.status_code == 404
        assert page.content.decode() == f"{sentence}\n" and api.json()["detail"] == sentence
    path.unlink()
    page, api = asked(toy, "Rosa", judged, prediction.pk)
    assert page.status_code == api.status_code == 404
    assert "not kept any more" in page.content.decode()
    assert "not kept any more" in api.json()["detail"]


def test_every_line_of_a_file_is_found_wherever_its_blocks_end(tmp_path: Path) -> None:
    lines = [f"{number}\t{'x' * (number * 7919 % 3000)}" for number in range(1, 400)]
    lines[200] = "y" * (CHUNK * 2)
    path, most = tmp_path / "file", CHUNK * 3
    text = "\r\n".join(lines).encode()
    for content in (text, gzip.compress(text[:9000]) + gzip.compress(text[9000:])):
        path.write_bytes(b"\xef\xbb\xbf" + content if content is text else content)
        for number in (*range(1, 400, 13), 200, 201, 202, 399):
            assert line_at(path, number, Limits(), most) == (lines[number - 1], False), number
        assert line_at(path, 400, Limits(), most) is None


def test_one_file_is_read_at_a_time_and_who_waits_too_long_is_told_to_come_again(
    judged: Submission, toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbpo.web.research.line.WAIT", 0.01)
    prediction = judged.predictions.order_by("pk")[0].pk
    with READING:
        for answer in asked(toy, "Rosa", judged, prediction):
            assert answer.status_code == 503 and answer["Retry-After"]
    assert [answer.status_code for answer in asked(toy, "Rosa", judged, prediction)] == [200, 200]
