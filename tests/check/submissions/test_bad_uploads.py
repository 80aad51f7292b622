"""Bad uploads: each gets its sentence, none breaks anything, nothing is ever half there."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from kbpo.instances.models import Instance, Target
from kbpo.submissions.ingest import tick
from kbpo.submissions.models import Prediction, Problem, Submission

Upload = Callable[..., Submission]
NOISE = random.Random(1).randbytes(50_000)
"""Bytes that nothing can be made of, the same in every run: one in so many would be a gzip file
that ends too early"""
GZIPPED = gzip.compress(NOISE.hex().encode())
ENDLESS = b"x" * (2 * 1024 * 1024)

REFUSED = {
    "empty": (b"", "The file is empty."),
    "binary": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "The file is a picture, not UTF-8 text."),
    "zeros": (bytes(5000), "The file is binary, not UTF-8 text."),
    "utf-16": (
        "toy\n:E1\ttype\tPER\n".encode("utf-16"),
        "The file is text in UTF-16, not UTF-8 text.",
    ),
    "gzip twice": (gzip.compress(gzip.compress(b"toy\n")), "The file is gzipped twice"),
    "truncated gzip": (GZIPPED[:-2000], "ends too early"),
    "damaged gzip": (b"\x1f\x8b" + NOISE[:500], "The gzip file is damaged."),
    "gzip with a damaged middle": (
        GZIPPED[:9000] + bytes(2000) + GZIPPED[11_000:],
        "The gzip file is damaged.",
    ),
    "gzip bomb": (gzip.compress(b"toy\n" * 5_000_000), "unpacks to more than 200 times its size"),
    "one endless line": (ENDLESS, "neither a TAC KBP knowledge base"),
    "a page of the web": (
        b"<html><body>Log in</body></html>",
        "looks like XML or a page of the web",
    ),
    "prose": (b"Dear all,\nhere is our run.\n", "neither a TAC KBP knowledge base"),
    "only a run id": (b"toy_run\n", "neither a TAC KBP knowledge base"),
    "wrong columns": (b"toy\n:E1\ttype\n:E1\tper:parents\t:E2\n", "The first problem is on line"),
    "JSON of another kind": (b'{"hello": 1}\n', "The key “doc” is missing"),
}


@pytest.mark.parametrize(
    ("content", "sentence"), [pytest.param(*v, id=k) for k, v in REFUSED.items()]
)
@pytest.mark.django_db
def test_a_file_without_a_usable_relation_is_refused_in_a_sentence(
    upload: Upload, content: bytes, sentence: str
) -> None:
    submission = upload(content)
    assert tick() == 1
    submission.refresh_from_db()
    assert submission.status == "refused"
    assert sentence in submission.reason
    assert submission.counts["errors"] >= 1
    assert Problem.objects.filter(submission=submission, severity="error").exists()
    assert (
        not Prediction.objects.exists()
        and not Instance.objects.exists()
        and not Target.objects.exists()
    )


def edited(kb: list[str], old: str, new: str) -> list[str]:
    assert any(old in line for line in kb)
    return [line.replace(old, new) for line in kb]


LAST = "org:place_of_headquarters"
WITH_PROBLEMS: dict[str, tuple[Callable[[list[str]], Any], str, str, int]] = {
    "wrong columns": (lambda kb: [*kb, ":Mara\tper:parents"], "syntax.columns", "error", 5),
    "outside the document": (
        lambda kb: [*kb[:-1], kb[-1].replace("d1:0-", "d1:0-9")],
        "reference.offsets",
        "error",
        4,
    ),
    "unknown document": (
        lambda kb: [*kb[:-1], kb[-1].replace("d1:", "d9:")],
        "reference.document",
        "error",
        4,
    ),
    "unknown predicate": (
        lambda kb: edited(kb, LAST, "org:colour"),
        "schema.unknown_predicate",
        "error",
        4,
    ),
    "undefined entity": (
        lambda kb: [*kb[:-1], kb[-1].replace(":Nordwerk", ":E9")],
        "reference.entity",
        "error",
        4,
    ),
    "another gloss": (
        lambda kb: edited(kb, 'mention\t"Lindt"', 'mention\t"Lund"'),
        "reference.gloss",
        "error",
        5,
    ),
    "duplicate lines": (lambda kb: [*kb, kb[-1]], "consistency.duplicate", "warning", 5),
    "wrong encoding": (
        lambda kb: ("\n".join(kb) + "\n").encode() + b':E8\tmention\t"Troms\xf8"\td1:0-5\n',
        "syntax.encoding",
        "error",
        5,
    ),
    "a long line": (lambda kb: [*kb, ":E8\tmention\t" + "x" * 70_000], "limits.line", "error", 5),
    "control characters": (
        lambda kb: [kb[0], "#" + "x" * 5000, *kb[1:], ":E8\tmention\t\x00"],
        "syntax.control",
        "error",
        5,
    ),
}


@pytest.mark.parametrize(
    ("spoil", "code", "severity", "left"), WITH_PROBLEMS.values(), ids=WITH_PROBLEMS.keys()
)
def test_a_bad_line_gets_its_message_and_the_good_ones_are_kept(
    upload: Upload,
    kb: list[str],
    spoil: Callable[[list[str]], Any],
    code: str,
    severity: str,
    left: int,
) -> None:
    submission = upload(spoil(kb))
    tick()
    submission.refresh_from_db()
    assert submission.status == "read", submission.reason
    assert submission.counts["relations"] == Prediction.objects.count() == left
    problem = Problem.objects.get(submission=submission, code=code)
    assert problem.severity == severity
    assert problem.line > 1 and problem.text.endswith(".")
    assert submission.counts["by_code"][code] == 1
    assert submission.counts["errors"] == (1 if severity == "error" else 0)
    assert submission.counts["set_aside"] >= submission.counts["errors"], "the page tells both"


def test_a_valid_file_for_another_corpus_is_refused(upload: Upload, kb: list[str]) -> None:
    submission = upload([line.replace("d1:", "NYT_1:").replace("d3:", "NYT_3:") for line in kb])
    tick()
    submission.refresh_from_db()
    assert submission.status == "refused"
    assert "It looks like a file for another corpus." in submission.reason


def test_markup_is_text(upload: Upload, kb: list[str]) -> None:
    name = "<script>alert(1)</script>"
    submission = upload(
        [name, *kb[1:], f":{name}\ttype\tPER"], name=name, file_name=f"{name}.kb.tsv"
    )
    tick()
    submission.refresh_from_db()
    assert (submission.status, submission.name, submission.run_id) == ("read", name, name)


def test_only_the_first_problems_are_kept_and_all_are_counted(
    upload: Upload, kb: list[str], monkeypatch: Any
) -> None:
    from formats.messages import Report

    monkeypatch.setattr("kbpo.submissions.ingest.Report", partial(Report, keep=3))
    submission = upload([*kb, *[":x"] * 10])
    tick()
    submission.refresh_from_db()
    assert submission.counts["by_code"]["syntax.columns"] == 10
    assert Problem.objects.count() == 3
