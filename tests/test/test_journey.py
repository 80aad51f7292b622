"""The whole journey on real processes: upload over HTTP, judged through the pages, rows on the
leaderboard.

What the board says is worked out again from the exported draws and labels with `estimators` alone.
"""

from __future__ import annotations

import html
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from export import CRITERIA, KINDS, Export, Floats, export
from numpy.testing import assert_allclose
from processes import Service, wait_for
from travel import Travel, make_travel

from estimators.design import Design
from estimators.horvitz_thompson import centred_difference_estimate, iid_inclusion_probabilities
from estimators.joint import joint_precision, joint_recall, simple_precision
from kbpo.evaluation.data import load_data
from kbpo.evaluation.due import scoring_state
from kbpo.evaluation.models import Rescoring
from kbpo.instances.models import STAGED
from kbpo.tracks.models import Track

RUNS = ("Harbor_2", "LindqvistLab_1")
EXACT = 1e-10
OF_TRACK = "(SELECT id FROM tracks_track WHERE slug = %s)"


@pytest.fixture(scope="module", params=[pytest.param("iid", marks=pytest.mark.soak), "poisson"])
def travel(
    request: pytest.FixtureRequest, service: Service, tmp_path_factory: pytest.TempPathFactory
) -> Travel:
    """A track on which two systems travelled to the end."""
    design = str(request.param)
    made = make_travel(
        service,
        tmp_path_factory.mktemp(design),
        f"Journey {design}",
        seed=3,
        design=design,
        half_width="0.150",  # few questions; the numbers that come of them are as exact
    )
    with made.judging():
        for run in RUNS:
            made.travel(run)
        wait_for(lambda: _settled(made), "the last scores")
    return made


def _settled(travel: Travel) -> bool:
    """Whether the scores have seen everything that there is."""
    with travel.service.speaking():
        row = Rescoring.objects.select_related("track").get(track__slug=travel.track)
        return bool(row.state.items() >= scoring_state(row.track).items())


@pytest.fixture(scope="module")
def exported(travel: Travel) -> Export:
    return export(travel)


@pytest.fixture(scope="module")
def stored(travel: Travel) -> dict[tuple[str, ...], dict[int, tuple[float, float, int]]]:
    """(quantity, criterion, distribution, method) -> submission -> value, variance, labels."""
    found: dict[tuple[str, ...], dict[int, tuple[float, float, int]]] = {}
    with travel.service.speaking():
        figures = Track.objects.get(slug=travel.track).evaluations.latest("number").report.figures
    for key, figure in figures.items():
        row: Any = (figure.value, figure.variance, figure.n_labels)
        found.setdefault(key[1:5], {})[key.submission] = row
    return found


def test_a_row_stands_on_the_page_and_in_the_json(travel: Travel, stored: dict) -> None:
    page = html.unescape(
        travel.page(f"/tracks/{travel.track}/?distribution=instance&criterion=correct")
    )
    board = travel.call(f"tracks/{travel.track}/board/?distribution=instance&criterion=correct")
    assert {row["name"] for row in board["systems"]} == set(RUNS)
    assert board["being_judged"] == []
    for row in board["systems"]:
        assert row["name"] in page
        for part in ("f1", "precision", "recall"):
            value = stored[part, "correct", "instance", "centred"][row["submission"]][0]
            assert row[part]["value"] == value
            assert (
                row[part]["low95"]
                < row[part]["low80"]
                < value
                < row[part]["high80"]
                < row[part]["high95"]
            )
            assert f"{value * 100:.1f}"[:2] in page


def test_nothing_went_wrong_on_the_way(travel: Travel) -> None:
    assert travel.work.errors == []
    assert (
        travel.rows(
            f"SELECT reason FROM submissions_submission WHERE track_id = {OF_TRACK} AND reason"
            " <> ''"
        )
        == []
    )
    where = f"""FROM annotation_assignment a JOIN annotation_hit h ON h.id = a.hit_id
        WHERE h.track_id = {OF_TRACK}"""
    assert travel.rows(f"SELECT a.reason {where} AND a.reason <> ''") == []


def test_nothing_is_left_open(travel: Travel) -> None:
    of_hits = f"JOIN annotation_hit h ON h.id = a.hit_id WHERE h.track_id = {OF_TRACK}"
    where = f"WHERE track_id = {OF_TRACK}"
    assert travel.rows(f"SELECT DISTINCT status FROM submissions_submission {where}") == [
        ("scored",)
    ]
    assert travel.rows(f"SELECT DISTINCT status FROM annotation_question {where}") == [("settled",)]
    assert travel.rows(f"SELECT DISTINCT status FROM annotation_hit {where}") == [("closed",)]
    assert travel.rows(f"SELECT DISTINCT a.status FROM annotation_assignment a {of_hits}") == [
        ("approved",)
    ]


def test_two_people_who_agree_judged_every_question(travel: Travel) -> None:
    labels = """
        SELECT t.kind, l.n, l.method, l.disagreement
        FROM instances_label l JOIN instances_target t ON t.id = l.target_id
        WHERE t.corpus_id = (SELECT corpus_id FROM tracks_track WHERE slug = %s)
            AND l.source = 'crowd'
    """
    found = travel.rows(labels)
    assert {row[0] for row in found} == {"pair", "mention"}
    assert {row[1:] for row in found} == {(2, STAGED, 0.0)}
    [(questions,)] = travel.rows(
        f"SELECT count(*) FROM annotation_question WHERE track_id = {OF_TRACK}"
    )
    assert sum(row[0] == "pair" for row in found) == questions
    assert travel.work.answers == 2 * questions
    met = f"""
        SELECT count(*) FROM (SELECT a.worker_id, q.target_id, q.round FROM annotation_assignment a
            JOIN annotation_hit_questions hq ON hq.hit_id = a.hit_id JOIN annotation_question q
                ON q.id = hq.question_id
            WHERE q.track_id = {OF_TRACK} GROUP BY 1, 2, 3 HAVING count(*) > 1) AS twice
    """
    assert travel.rows(met) == [(0,)]


def test_money_is_spent_or_given_back_to_the_cent(travel: Travel) -> None:
    ledger = (
        "SELECT purpose_kind || ':' || purpose_number, kind, sum(amount) FROM money_ledger"
        f" WHERE track_id = {OF_TRACK} GROUP BY 1, 2"
    )

    def sums_once_given_back() -> dict[tuple[str, str], Decimal] | None:
        sums = {(purpose, kind): amount for purpose, kind, amount in travel.rows(ledger)}
        purposes = [f"submission:{pk}" for pk in travel.submissions]
        open_ones = [
            sums[one, "reserve"] - sums[one, "spend"] - sums.get((one, "release"), 0)
            for one in purposes
        ]
        assert min(open_ones) >= 0
        return None if any(open_ones) else sums

    sums = wait_for(sums_once_given_back, "what is not needed to be given back by the clock")
    spent = {purpose: amount for (purpose, kind), amount in sums.items() if kind == "spend"}
    lessons = {
        purpose: spent.pop(purpose) for purpose in list(spent) if purpose.startswith("tutorial:")
    }
    assert set(lessons.values()) <= {Decimal("0.75")}, (
        "whoever had not learned before was paid for it, once"
    )
    judged = sum(spent.values())
    assert judged == travel.work.answers * Decimal("0.05")
    payments = f"""
        SELECT count(*), sum(p.amount) FROM annotation_payment p JOIN annotation_assignment a
            ON a.id = p.assignment_id
        JOIN annotation_hit h ON h.id = a.hit_id WHERE h.track_id = {OF_TRACK}
    """
    assert travel.rows(payments) == [(travel.work.answers, judged)]


def test_overlaps_are_those_of_the_predictions(travel: Travel, exported: Export) -> None:
    rows = travel.service.fetch(
        "SELECT d.submission_id, o.key::bigint, d.kind, o.value::float8"
        " FROM sampling_samplingdistribution d, jsonb_each_text(d.overlaps) o"
        " WHERE d.submission_id = ANY(%s)",
        exported.systems,
    )
    # Designs with thresholds need no overlaps.
    assert len(rows) == (3 * len(KINDS) if _is_iid(exported) else 0)
    for first, second, kind, value in rows:
        expected = exported.overlap(kind)[
            exported.systems.index(first), exported.systems.index(second)
        ]
        assert_allclose(value, expected, rtol=EXACT)


def test_published_precision_is_what_the_estimators_give(
    travel: Travel, exported: Export, stored: dict
) -> None:
    if not _is_iid(exported):
        assert not any(method in ("simple", "joint") for *_, method in stored)
        return
    m = len(exported.systems)
    for kind, draws in exported.draws.items():
        P = exported.p[kind][draws.row]
        for criterion in CRITERIA:
            f = np.nan_to_num(
                exported.f[criterion][draws.row]
            )  # where it is not predicted its probability is 0
            own = f[np.arange(draws.row.size), draws.owner]
            simple = simple_precision(own, draws.owner, m, ddof=1)
            joint = joint_precision(P, draws.owner, f, exported.overlap(kind), ddof=1)
            _compare(
                stored["precision", criterion, kind, "simple"],
                exported,
                simple.value,
                simple.variance,
            )
            _compare(
                stored["precision", criterion, kind, "joint"], exported, joint.value, joint.variance
            )


def test_precision_is_what_the_estimators_give(
    travel: Travel, exported: Export, stored: dict
) -> None:
    with travel.service.speaking():
        data = load_data(Track.objects.get(slug=travel.track))
    assert data.pool.instance.tolist() == exported.instance.tolist()
    rows = np.flatnonzero(_drawn(travel, exported))
    judged = ~np.isnan(exported.f["relation"][rows]).all(
        axis=1
    )  # what nobody who pays predicts may not be shown
    pi = _inclusion(exported) * judged.mean()
    targets, code = np.unique(exported.target[rows], return_inverse=True)
    design = Design(np.array([pi[exported.target == one][0] for one in targets]))
    for kind in KINDS:
        for criterion in CRITERIA:
            p, g = exported.p[kind], data.g[criterion]
            found = centred_difference_estimate(
                p[rows],
                pi[rows],
                np.where(p[rows] > 0, exported.f[criterion][rows], 0.0),
                g[rows],
                p.T @ g,
                target=code,
                n_targets=targets.size,
                design=design,
            )
            _compare(stored["precision", criterion, kind, "centred"], exported, found.value)


def test_published_recall_is_what_the_estimators_give(
    travel: Travel, exported: Export, stored: dict
) -> None:
    """From all draws of all distributions, each (distribution, system) a source of its own."""
    if ("recall", "correct", "instance", "joint") not in stored:
        return
    with travel.service.speaking():
        facts = load_data(Track.objects.get(slug=travel.track)).facts
    assert facts is not None and facts.n_annotated == 4
    m = len(exported.systems)
    row = np.concatenate([exported.draws[kind].row for kind in KINDS])
    source = np.concatenate([exported.draws[kind].owner + at * m for at, kind in enumerate(KINDS)])
    P = np.concatenate([exported.p[kind][row] for kind in KINDS], axis=1)
    relation = np.nanmax(exported.f["relation"][row], axis=1)  # the same for all who predict it
    for criterion in ("relation", "correct"):
        counted = facts.predicted[row]
        if criterion == "correct":
            counted = counted & (exported.f["linking"][row] == 1)
        found = joint_recall(
            P,
            source,
            relation,
            np.zeros((P.shape[1], P.shape[1])),
            np.tile(counted, (1, len(KINDS))),
            facts.found,
            weight=facts.pool_weight[row],
            document=facts.document,
            n_annotated=facts.n_annotated,
            n_documents=facts.n_documents,
            ddof=1,
        )
        _compare(
            stored["recall", criterion, "instance", "joint"], exported, np.asarray(found.value)[:m]
        )


def test_f1_is_the_harmonic_mean(exported: Export, stored: dict) -> None:
    methods = {method for *_, method in stored} - {"simple"}
    for kind in KINDS:
        for criterion in ("relation", "correct"):
            for method in methods:
                precision, recall = (
                    np.array([stored[key][system][0] for system in exported.systems], np.float64)
                    for key in (
                        ("precision", criterion, kind, method),
                        ("recall", criterion, "instance", method),
                    )
                )
                expected = 2 * precision * recall / (precision + recall)
                _compare(stored["f1", criterion, kind, method], exported, expected)


def _is_iid(exported: Export) -> bool:
    """Whether targets were drawn with replacement."""
    return any(draws.row.size for draws in exported.draws.values())


def _compare(stored: dict, exported: Export, value: object, variance: object = None) -> None:
    found = np.array([stored[system][:2] for system in exported.systems], dtype=np.float64)
    # Nothing is stored where judgments are worth fewer than ten; no number may stand there.
    printed = ~np.isnan(found[:, 0])
    assert_allclose(found[printed, 0], np.asarray(value)[printed], rtol=EXACT, atol=EXACT)
    if (
        variance is not None
    ):  # where all labels agree, the stored one is that of one label more that disagrees
        seen = np.asarray(variance) > EXACT
        assert_allclose(found[seen, 1], np.asarray(variance)[seen], rtol=EXACT)


def _inclusion(exported: Export) -> Floats:
    """(u,) the probability that an instance's target was drawn by any batch of either design."""
    missed = 1 - exported.threshold
    for kind, draws in exported.draws.items():
        n = np.bincount(draws.owner, minlength=len(exported.systems))
        missed = missed * (
            1 - iid_inclusion_probabilities(exported.p[kind], n, target=exported.target)
        )
    return np.asarray(1 - missed)


def _drawn(travel: Travel, exported: Export) -> Floats:
    """(u,) whether the instance's target was drawn."""
    targets = f"""
        SELECT DISTINCT a.target_id FROM sampling_sample a JOIN sampling_samplebatch b
            ON b.id = a.batch_id
        JOIN submissions_submission s ON s.id = b.submission_id WHERE s.track_id = {OF_TRACK}
    """
    return np.isin(exported.target, [row[0] for row in travel.rows(targets)])


def test_people_see_where_it_is(travel: Travel) -> None:
    """The API tells each submission's journey, with times."""
    for pk in travel.submissions:
        now = travel.told(pk)
        times = [
            now["times"][name]
            for name in ("received", "read", "planned", "confirmed", "sampled", "scored")
        ]
        assert all(times) and times == sorted(times)
        assert now["money"]["reserved"] == "0.00"
