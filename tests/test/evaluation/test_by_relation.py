"""Two systems relation by relation: the difference of what is printed, and intervals that hold for
all at once.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from django.test import Client
from scipy.stats import norm

from kbpo.evaluation.compare import differences_by_relation, simultaneous_quantile
from kbpo.evaluation.data import load_data
from kbpo.evaluation.models import Evaluation
from kbpo.evaluation.score import read_slices
from kbpo.submissions.models import Submission
from kbpo.web.public import compare
from scoring.compare import Errors
from scoring.data import Data
from scoring.default import Centred
from scoring.report import Relations
from scoring.slices import Cut, restrict_data_to_slice
from tests.conftest import Toy
from tests.reports import figure_of
from tests.test.evaluation.test_compare_page import URL, pair, scored
from tests.test.evaluation.world import BASED, LIVES, WORKS, World, half_asked

pytestmark = pytest.mark.django_db
__all__ = ["pair", "scored"]
Pair = tuple[Submission, Submission]


def test_a_difference_is_that_of_the_printed_slices_with_the_error_of_their_influences(
    world: World, pair: Pair, scored: Evaluation
) -> None:
    found = {
        one.quantity: one
        for one in differences_by_relation(scored, pair[0].pk, pair[1].pk, min_judgments=1)
    }
    assert set(found) == {WORKS, BASED, LIVES}
    data = load_data(world.track)
    a, b = (data.systems.index(one.pk) for one in pair)
    errors = []
    for name, one in found.items():
        number = world.predicates[name].pk
        cut = Cut("relation", name, data.pool.stratum == number, "instance", stratum=number)
        arranged = Centred(restrict_data_to_slice(data, cut))
        estimate = arranged.precision_where_settled("instance", "relation")
        realised = np.asarray(arranged.design.variance(estimate.influence))
        wider = np.maximum(realised, estimate.anticipated) / np.where(realised > 0, realised, 1)
        as_printed = estimate.influence * np.sqrt(wider)
        assert one.error**2 == pytest.approx(
            arranged.design.variance(as_printed[:, a] - as_printed[:, b]), rel=1e-4
        )
        errors.append(one.error)
        of = {"slice": f"relation:{name}", "quantity": "precision", "criterion": "relation"}
        printed = [figure_of(scored, row, **of).value or 0.0 for row in pair]
        assert one.value == printed[0] - printed[1]
    assert max(errors) > 0


def test_three_relations_have_wider_intervals_than_one_and_turn_with_the_pair(
    pair: Pair, scored: Evaluation
) -> None:
    found = differences_by_relation(scored, pair[0].pk, pair[1].pk, min_judgments=1)
    for one in found:
        assert (one.high80 - one.value) / one.error == pytest.approx(
            norm.ppf(0.5 + 0.8 ** (1 / 3) / 2)
        )
        assert (one.high95 - one.value) / one.error == pytest.approx(
            norm.ppf(0.5 + 0.95 ** (1 / 3) / 2)
        )
        assert one.told_apart == (one.low95 > 0 or one.high95 < 0)
    assert [one.value for one in found] == sorted((one.value for one in found), reverse=True)
    turned = differences_by_relation(scored, pair[1].pk, pair[0].pk, min_judgments=1)
    assert {(one.quantity, -one.value, one.error) for one in turned} == {
        (one.quantity, one.value, one.error) for one in found
    }
    assert simultaneous_quantile(0.8, 1) == pytest.approx(norm.ppf(0.9)) and simultaneous_quantile(
        0.8, 2
    ) > simultaneous_quantile(0.8, 1)
    least = 1 + min(min(one.first.n_labels, one.second.n_labels) for one in found)
    fewer = differences_by_relation(scored, pair[0].pk, pair[1].pk, min_judgments=least)
    assert 0 < len(fewer) < 3, "who is told depends on numbers of judgments alone"
    assert (
        fewer[0].high80 - fewer[0].low80 < found[0].high80 - found[0].low80
        or fewer[0].quantity != found[0].quantity
    )
    assert differences_by_relation(scored, pair[0].pk, 0, min_judgments=1) == []
    assert differences_by_relation(scored, pair[0].pk, pair[0].pk, min_judgments=1) == []


@pytest.mark.soak
@pytest.mark.statistical
def test_all_intervals_hold_at_once_as_often_as_they_say(toy: Toy) -> None:
    """About 50 judgments a system and relation, as the page asks for; half of the targets asked,
    300 times.
    """
    world = World(toy, is_study=True, n_documents=30)
    rows = [
        world.system("one", lambda one: one.pk % 3 != 0),
        world.system("two", lambda one: one.pk % 3 != 1),
    ]
    for row in rows:
        world.answer(world.sample(row))
    data, rng, board = load_data(world.track), np.random.default_rng(3), {one.pk for one in rows}
    all_cuts = list(read_slices(world.track, data))
    relations = [one for one in all_cuts if one.group == "relation"]

    def differences_of(some: Data, errors: Errors) -> dict[str, float]:
        found = {}
        for cut in relations:
            arranged = Centred(restrict_data_to_slice(some, cut))
            estimate = arranged.precision("instance", "relation")
            errors.add_errors(cut, estimate, arranged.design)
            found[cut.name] = float(estimate.value[0] - estimate.value[1])
        return found

    truth = differences_of(data, Errors.from_data(data, board))
    held, alone = [], []
    for _ in range(300):
        half = half_asked(data, rng)
        errors = Errors.from_data(data, board)
        values = differences_of(half, errors)
        ratio = np.array(
            [abs(values[name] - truth[name]) / error for name, [error] in errors.errors.items()]
        )
        held.append((ratio <= simultaneous_quantile(0.8, ratio.size)).all())
        alone.append((ratio <= simultaneous_quantile(0.8, 1)).all())
    assert len(relations) == 3
    assert 0.76 < np.mean(held) < 0.92, np.mean(held)
    assert np.mean(alone) < 0.70, "single intervals at 80 % do not all hold at once"


def test_the_page_tells_of_well_judged_relations_only(
    pair: Pair, scored: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"{URL}?a={pair[0].pk}&b={pair[1].pk}&criterion=relation"

    def page() -> str:
        return re.sub(r"\s+", " ", Client().get(address).content.decode())

    assert (
        re.search("Precision by relation, [^<]*wide minus [^<]*other", page())
        and "No relation has 50 judgments" in page()
    )
    monkeypatch.setattr(compare, "LEAST_LABELS", 10)
    few = page()
    assert "hold for all 3 relations at once (80 % and 95 %)" in few and "left out" not in few
    assert "grey" in few.lower() and "the two differ significantly" in few
    counts = sorted(
        min(one.first.n_labels, one.second.n_labels)
        for one in differences_by_relation(scored, pair[0].pk, pair[1].pk, min_judgments=1)
    )
    monkeypatch.setattr(compare, "LEAST_LABELS", counts[-1])
    assert "2 more relations left out" in page() and "at once (80" not in page()


def test_an_evaluation_that_kept_no_errors_shows_no_table(pair: Pair, scored: Evaluation) -> None:
    scored.set_report(scored.report, replace(scored.details, relations=Relations()))
    scored.save()
    page = Client().get(f"{URL}?a={pair[0].pk}&b={pair[1].pk}&criterion=relation")
    assert page.status_code == 200 and "Precision by relation" not in page.content.decode()
