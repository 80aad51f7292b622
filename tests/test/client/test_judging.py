"""A program judges over the command line: it goes on where it was,
and what it said is never lost.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from kbpo_client.commands import main
from kbpo_client.commands.judge import JudgeFailed, parse_score_line

from kbpo.accounts.models import Token
from kbpo.scores.models import Score
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.test.web.conftest import GOOD, OTHERS

pytestmark = pytest.mark.django_db(transaction=True)

GOOD_JUDGE = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    assert "claim" in asked and asked["text"][asked["subject"]["begin"]:asked["subject"]["end"]]
    print(json.dumps({"id": asked["id"], "score": len(asked["claim"])}), flush=True)
"""
TIRED_JUDGE = """
import json, sys
for at, line in enumerate(sys.stdin):
    if at == 3:
        sys.exit(7)
    print(json.dumps({"id": json.loads(line)["id"], "score": 1}), flush=True)
"""
ODD_JUDGE = """
import json, sys
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "score": WHAT}), flush=True)
"""


@pytest.fixture
def judge(live_server: Any, toy: Toy, tmp_path: Path) -> Callable[..., Result]:
    """Runs a program as a judge of the toy track, as its admin unless told otherwise."""

    def run(program: str, *words: str, who: str = "Admin") -> Result:
        path = tmp_path / "judge.py"
        path.write_text(program)
        token = Token.create_with_secret(toy.users[who], "judge")[1]
        given = ["--url", live_server.url, "--token", token, "judge", "toy", "--name", "length"]
        return CliRunner().invoke(main, [*given, "--command", f"{sys.executable} {path}", *words])

    return run


def test_a_program_judges_what_is_there_and_what_arrives_later(
    judge: Callable[..., Result], draft: Callable[..., Submission]
) -> None:
    draft(GOOD)
    result = judge(GOOD_JUDGE, "--batch", "3")
    assert result.exit_code == 0, result.output
    assert "4 judged; nothing is left." in result.output and "3 judged, 1 left" in result.stderr
    before = set(Score.objects.values_list("pk", flat=True))
    draft(OTHERS, by="Tim", name="more")
    assert "2 judged; nothing is left." in judge(GOOD_JUDGE).output
    assert Score.objects.count() == 6 and before < set(Score.objects.values_list("pk", flat=True))


def test_what_a_program_said_before_it_broke_is_kept(
    judge: Callable[..., Result], draft: Callable[..., Submission]
) -> None:
    draft(GOOD)
    result = judge(TIRED_JUDGE)
    assert result.exit_code == 1 and "ended (code 7) while 1 answers were missing" in result.output
    assert Score.objects.count() == 3
    assert "1 judged" in judge(GOOD_JUDGE).output


@pytest.mark.parametrize("what", ["float('nan')", "'good'", "None"])
def test_what_is_no_score_ends_with_a_sentence(
    judge: Callable[..., Result], draft: Callable[..., Submission], what: str
) -> None:
    draft(GOOD)
    result = judge(ODD_JUDGE.replace("WHAT", what))
    assert result.exit_code == 1 and "is no finite number" in result.output
    assert not Score.objects.exists()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"id": [1], "score": 1}', "answered about [1], which it was not asked about"),
        ('{"id": true, "score": 1}', "answered about True, which"),
        ('{"id": 1.0, "score": 1}', "answered about 1.0, which"),
        ('{"id": 1, "score": true}', "is no finite number: True"),
        ('{"id": 1, "score": 1e999}', "between −1,000,000,000 and 1,000,000,000, the judge’s of 1"),
        (f'{{"id": 1, "score": {"9" * 400}}}', "between −1,000,000,000 and 1,000,000,000"),
        (f'{{"id": 1, "score": {"9" * 5000}}}', "no JSON object"),
        ("[" * 100_000, "no JSON object"),
        ("\ufffd", "no JSON object"),
    ],
)
def test_an_odd_answer_ends_with_a_sentence(line: str, why: str) -> None:
    with pytest.raises(JudgeFailed) as failed:
        parse_score_line(line, {1})
    assert why in str(failed.value) and len(str(failed.value)) < 200
    assert parse_score_line('{"id": 1, "value": 0}', {1}) == {"id": 1, "value": 0.0}
