"""A file becomes targets, instances and predictions: counted right, shared, in whole or not at
all.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections

from kbpo.corpus.load import find_schema, load_corpus
from kbpo.instances.models import Instance, Target
from kbpo.instances.targets import random_number_of_target
from kbpo.queue import BACKOFF
from kbpo.submissions.ingest import tick
from kbpo.submissions.models import Prediction, Problem, Submission
from kbpo.submissions.receive import store_submission, withdraw_submission
from kbpo.submissions.withdraw import discard_draft, discard_ended_drafts
from kbpo.tracks.kbp import store
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

Upload = Callable[..., Submission]
REDOCRED = Path(__file__).resolve().parents[4] / "shared" / "data" / "redocred"


def test_the_counts_behind_the_weights_are_those_of_the_definitions(
    upload: Upload, kb: list[str]
) -> None:
    submission = upload(kb)
    assert tick() == 1
    submission.refresh_from_db()
    rows = Prediction.objects.order_by("line").values_list(
        "instance__predicate__name", "same_predicate", "same_subject", "subject_facts"
    )
    assert list(rows) == [
        ("per:organizations_founded", 2, 4, 3),
        ("per:organizations_founded", 2, 4, 3),
        ("per:place_of_birth", 1, 4, 3),
        ("per:place_of_residence", 1, 4, 3),
        ("org:place_of_headquarters", 1, 1, 1),
    ]
    expected = {
        "relations": 5,
        "relation_lines": 5,
        "set_aside": 0,
        "entities": 5,
        "documents": 2,
        "lines": len(kb),
    }
    assert expected.items() <= submission.counts.items()
    assert (submission.status, submission.door, submission.run_id) == ("read", "tac_kb", "toy_run")
    assert submission.progress == 1.0


@pytest.mark.parametrize(
    ("kind", "weights"),
    [
        ("instance", [1, 1, 1, 1, 1]),
        ("relation", [1 / 2, 1 / 2, 1, 1, 1]),
        ("entity", [1 / 4, 1 / 4, 1 / 4, 1 / 4, 1]),
        ("entity_relation", [3 / 8, 3 / 8, 3 / 4, 3 / 4, 1]),
    ],
)
def test_the_weights_in_sql(
    toy: Any, upload: Upload, kb: list[str], kind: str, weights: list[float]
) -> None:
    upload(kb)
    tick()
    sql = kind_of(toy.track).measures.distributions[kind].weight
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {sql} FROM submissions_prediction p ORDER BY p.line")
        assert [float(row[0]) for row in cursor.fetchall()] == pytest.approx(weights)


def test_the_weights_are_those_of_the_estimators_package(
    toy: Any, upload: Upload, kb: list[str]
) -> None:
    import numpy as np

    from estimators.distributions import prediction_probabilities

    upload(kb)
    tick()
    rows = np.array(
        Prediction.objects.order_by("line").values_list(
            "subject_entity", "instance__predicate_id", "object_entity"
        )
    )
    for kind, distribution in kind_of(toy.track).measures.distributions.items():
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT {distribution.weight} FROM submissions_prediction p ORDER BY p.line"
            )
            found = np.array([float(row[0]) for row in cursor.fetchall()])
        expected = prediction_probabilities(
            kind, subject=rows[:, 0], predicate=rows[:, 1], object=rows[:, 2]
        )
        assert found / found.sum() == pytest.approx(np.asarray(expected), rel=1e-12)


def test_keys_and_random_numbers_are_the_same_in_sql_and_in_python(
    toy: Any, upload: Upload, kb: list[str]
) -> None:
    upload(kb)
    tick()
    targets = list(Target.objects.all())
    assert len(targets) == 5
    for one in targets:
        spans = (one.a_begin, one.a_end), (one.b_begin, one.b_end)
        content = (toy.corpus.pk, "pair", one.document_id, *spans[0], *spans[1])
        assert one.key.hex == md5("|".join(map(str, content)).encode()).hexdigest()
        assert one.u == random_number_of_target(toy.corpus.hash_key, one.key)
        assert 0 <= one.u < 1


def test_systems_share_instances_and_both_directions_share_a_target(
    toy: Any, upload: Upload, kb: list[str]
) -> None:
    turned = [
        line.replace(
            ":Nordwerk\torg:place_of_headquarters\t:Bergen", ":Bergen\tper:parents\t:Nordwerk"
        )
        for line in kb
    ]
    upload(kb), upload(turned, team="Neural", user="Tim")
    tick()
    assert (Instance.objects.count(), Target.objects.count(), Prediction.objects.count()) == (
        6,
        5,
        10,
    )
    last = Instance.objects.get(predicate__name="per:parents")
    assert not last.forward
    assert last.target.instances.count() == 2


def test_a_failure_in_the_middle_leaves_nothing_and_the_next_try_does_all(
    upload: Upload, kb: list[str], monkeypatch: Any
) -> None:
    submission = upload([*kb, ":x"])
    monkeypatch.setattr(store, "_PREDICTIONS", store._PREDICTIONS + " RETURNING 1/0")
    assert tick() == 0
    submission.refresh_from_db()
    assert (submission.status, submission.attempts) == ("received", 1)
    assert "It is logged." in submission.reason
    assert (
        not Prediction.objects.exists()
        and not Target.objects.exists()
        and not Problem.objects.exists()
    )
    monkeypatch.undo()
    Submission.objects.update(next_try_at=submission.next_try_at - 2 * BACKOFF)
    assert tick() == 1
    assert (Prediction.objects.count(), Problem.objects.count()) == (5, 1)


@pytest.mark.django_db(transaction=True)
def test_two_readers_at_once_share_instances_and_never_block_each_other(
    toy: Any, upload: Upload, kb: list[str], monkeypatch: Any
) -> None:
    first, second = (
        upload(kb),
        upload([kb[0], *kb[1:-5], *reversed(kb[-5:])], team="Neural", user="Tim"),
    )
    both = threading.Barrier(2, timeout=120)
    copied = store.copy_lines

    def wait(*args: Any, **more: Any) -> int:
        done = copied(*args, **more)
        both.wait()  # both transactions are open and have staged their claims
        return done

    monkeypatch.setattr(store, "copy_lines", wait)
    failures: list[BaseException] = []

    def read() -> None:
        try:
            tick()
        except BaseException as failure:
            failures.append(failure)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(180)
    assert not failures
    for submission in (first, second):
        submission.refresh_from_db()
        assert (submission.status, submission.attempts) == ("read", 0), submission.reason
    assert (Instance.objects.count(), Target.objects.count(), Prediction.objects.count()) == (
        5,
        5,
        10,
    )


def test_a_draft_that_ended_is_discarded_and_a_confirmed_one_never(
    upload: Upload, kb: list[str]
) -> None:
    draft, confirmed = upload(kb), upload(kb)
    tick()
    draft.refresh_from_db(), confirmed.refresh_from_db()
    assert not discard_draft(draft)  # it may still be confirmed
    confirmed.move("judging", confirmed_at=confirmed.received_at)
    withdraw_submission(draft), withdraw_submission(confirmed)
    assert discard_ended_drafts() == 1
    assert set(Prediction.objects.values_list("submission", flat=True)) == {confirmed.pk}
    assert Instance.objects.count() == 5


@pytest.mark.skipif(
    not REDOCRED.exists(), reason="the Re-DocRED runs are not next to this checkout"
)
def test_real_runs_give_exactly_their_instances(toy: Any, upload: Upload) -> None:
    corpus = load_corpus("Re-DocRED", REDOCRED / "corpus.jsonl.gz", find_schema("docred"))
    track = Track.objects.create(corpus=corpus, name="Re-DocRED", slug="redocred", status="open")
    truth = json.loads((REDOCRED / "truth.json").read_text())["systems"]
    for run in ("TeamA_1", "TeamG_2", "TeamI_1"):
        with (REDOCRED / "systems" / f"{run}.kb.tsv.gz").open("rb") as file:
            submission = store_submission(
                track, toy.teams["Patterns"], toy.users["Rosa"], file, name=run, file_name=run
            )
        tick()
        submission.refresh_from_db()
        assert (submission.status, submission.counts["errors"]) == ("read", 0)
        assert submission.counts["relations"] == truth[run]["predictions"]
        rows = Prediction.objects.filter(submission=submission).values_list(
            "instance__document__key",
            "instance__subject_begin",
            "instance__subject_end",
            "instance__predicate__name",
            "instance__object_begin",
            "instance__object_end",
        )
        with gzip.open(
            REDOCRED / "systems" / f"{run}.instances.tsv.gz", "rt", encoding="utf-8"
        ) as lines:
            expected = {tuple(line.split("\t")[:6]) for line in list(lines)[1:]}
        assert {tuple(map(str, row)) for row in rows} == expected
