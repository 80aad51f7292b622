"""`kbpo status`: what matters of a run on one screen, in every state that it can be in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kbpo_client.summary import summary_lines

from kbpo.accounts.models import Token
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.reports import rank
from tests.test.client.conftest import Run, told
from tests.test.web.conftest import GOOD
from tests.test.web.scored import make_board

pytestmark = pytest.mark.django_db(transaction=True)
SCREEN = 24
"""Lines of a terminal"""
NEXT = {
    "received": "kbpo status {} --watch",
    "read": "kbpo status {} --watch",
    "planned": "kbpo confirm {}",
    "confirmed": "kbpo status {} --watch",
    "judging": "kbpo status {} --watch",
    "scored": "kbpo errors {}",
    "refused": "kbpo problems {}",
    "expired": "submit the file again",
    "failed": "kbpo retry {}",
    "withdrawn": "",
}


@pytest.mark.parametrize("status", [state.value for state in Submission.Status])
def test_a_state_is_told_first_and_what_to_do_next(
    run: Run, draft: Callable[..., Submission], status: str
) -> None:
    row = draft(name="mine", until="planned" if status == "planned" else "read")
    Submission.objects.filter(pk=row.pk).update(status=status)
    shown = run("status", row.pk)
    lines = shown.output.splitlines()
    assert shown.exit_code == 0 and len(lines) <= SCREEN
    assert lines[0].startswith(f"mine (toy): {row.Status(status).label}")
    assert NEXT[status].format(row.pk) in shown.output
    assert ("Next: " in shown.output) is (status != "withdrawn")


def test_a_scored_run_is_one_screen_with_its_scores_and_rank(run: Run, toy: Toy) -> None:
    evaluation = make_board(toy, 3)
    row = Submission.objects.get(name="run 1")
    row.team.members.add(toy.users["Rosa"])
    numbers = list(Submission.objects.order_by("pk").values_list("pk", flat=True))
    ends = {"best": [2, 2, 1], "worst": [3, 3, 1], "level": 0.8}
    rank(evaluation, "f1", "correct", systems=numbers, **ends)
    before = run("status", row.pk, "--json").stdout
    lines = run("status", row.pk).output.splitlines()
    assert lines[0] == "run 1 (toy): Scored"
    assert [line.split()[0] for line in lines[2:5]] == ["F1", "Precision", "Recall"]
    assert lines[2].endswith(" 36.7 (34.7–38.7)") and "80 % interval" in lines[1]
    assert lines[5] == "Rank 2–3 of 3 on the board of toy."
    assert lines[6].startswith(f"Next: `kbpo errors {row.pk}`") and len(lines) <= 10
    in_long = run("status", row.pk, "--long").output.splitlines()
    assert in_long[: len(lines)] == lines and len(in_long) == len(lines) + 3
    assert run("status", row.pk, "--json", "--long").stdout == before
    Submission.objects.filter(pk=row.pk).update(is_private=True)
    private = run("status", row.pk).output
    assert "no board" in private and f"kbpo publish {row.pk}" in private
    assert "F1         36.7" in private, "a private run's own numbers"


def test_ranks_orders_and_notes_are_said_as_the_service_says_them() -> None:
    figure = {"value": 0.5, "low80": 0.4, "high80": 0.6, "n_labels": 80}
    submission: dict[str, Any] = {
        "id": 7,
        "name": "run",
        "track": "toy",
        "status": "scored",
        "status_text": "Scored",
        "reason": "",
        "private": False,
        "judging": {"sample": 9, "judged": 9, "labels": 80},
        "scores": [],
        "further": {
            "options": {"0.040": {"at_most": "1.00"}, "0.025": {"at_most": "9.00"}},
        },
    }
    system = {"submission": 7, "role": "system", "rank": [2, 3], "f1": figure, "recall": None}
    others = [
        {"submission": number, "role": role, "rank": rank}
        for number, role, rank in (
            (1, "system", [1, 1]),
            (2, "baseline", [2, 3]),
            (3, "reference", [1, 1]),
            (4, "system", None),
        )
    ]
    columns = [{"name": "f1", "label": "F1"}, {"name": "recall", "label": "Recall"}]
    lines = list(summary_lines(submission, {"systems": [system, *others], "columns": columns}))
    assert "  F1      50.0 (40.0–60.0)" in lines and "  Recall  –" in lines
    assert "Rank 2–3 of 3 on the board of toy." in lines, "of those that have a rank"
    [order] = [line for line in lines if "kbpo order" in line]
    assert "--half-width 0.04`" in order and order.endswith("±4 points, for at most $1.00.")
    note = {"value": None, "note": "Too few yet."}
    early = submission | {"status": "judging", "status_text": "Being judged"}
    lines = list(summary_lines(early, {"systems": [system | {"f1": note}], "columns": columns}))
    assert lines[0] == "run (toy): Being judged, 9 of 9" and "  F1      –  Too few yet." in lines


def test_what_is_wrong_with_a_file_is_listed(
    run: Run, toy: Toy, draft: Callable[..., Submission]
) -> None:
    row = draft(body=b'{"nothing": 1}\n' + 3 * b"no JSON\n", until="read")
    shown = run("problems", row.pk)
    assert shown.exit_code == 0 and "error    line 1: " in shown.output
    [told_once] = [line for line in shown.output.splitlines() if "syntax.json" in line]
    assert told_once.startswith("error    line 2: ") and "(and 2 more lines)" in told_once
    assert 1 in {problem["line"] for problem in told(run("problems", row.pk, "--json"))}
    assert run("problems", row.pk, who="Tim").exit_code == 1
    assert run("problems", draft(GOOD, name="good").pk).output == "No problems.\n"
    looks = Token.create_with_secret(toy.users["Rosa"], "looks", scope=Token.Scope.READ)[1]
    assert run("--token", looks, "problems", row.pk, who="").exit_code == 0
