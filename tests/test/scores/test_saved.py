"""A judge that knows something narrows intervals, and tilts no score; what it is worth is told."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from django.test import Client
from scipy.stats import norm

from estimators.crossfit import keyed_folds
from estimators.estimate import Estimate as Estimated
from kbpo import clock
from kbpo.accounts.models import User
from kbpo.evaluation import worth
from kbpo.evaluation.data import load_data
from kbpo.evaluation.due import change_signs
from kbpo.evaluation.leaderboard import read_board
from kbpo.evaluation.run import score_track
from kbpo.evaluation.worth import _system_correlation
from kbpo.instances.models import Instance, Label
from kbpo.instances.record import NewLabel, record_labels
from kbpo.sampling.designs import design_of, poisson
from kbpo.sampling.designs.state import State
from kbpo.sampling.draft import Draft, Study, planning_variances
from kbpo.sampling.guess import FOLDS, guess_ratings
from kbpo.sampling.models import SampleBatch, Threshold
from kbpo.scores.bring import set_scorer_used
from kbpo.scores.models import Scorer
from kbpo.submissions.models import Submission
from kbpo.submissions.receive import set_submission_role
from kbpo.tracks.registry import kind_of
from kbpo.tracks.texts.models import Input
from kbpo.web.public.judges import board_reliability_sentences
from kbpo.web.public.metrics import judgments_by_width
from kbpo.web.research.quote import list_quotes
from kbpo.web.research.submissions import END_REASONS
from scoring.default import Centred
from scoring.report import Components, Figure, Worth
from scoring.report import Scorer as MetricScorer
from scoring.score import default_estimates
from tests.reports import figure_of
from tests.test.scores.conftest import CRITERIA, MANY, World


def lines_of(address: str) -> bytes:
    """Return a file that is sent row by row."""
    return b"".join(Client().get(address))


def mean_of(world: World, method: str, name: str) -> Figure:
    """The overall score of a run in the latest evaluation."""
    latest = world.track.evaluations.order_by("-number").first()
    of = {"criterion": "overall", "method": method, "quantity": "mean"}
    return figure_of(latest, world.runs[name], **of)


def test_a_judge_narrows_what_people_say_and_its_own_bias_reaches_no_score(studied: World) -> None:
    before = change_signs(studied.track)
    score_track(studied.track)
    for name, level in studied.truth.items():
        with_judge, alone = (mean_of(studied, one, name) for one in ("centred", "unaided"))
        assert with_judge.variance is not None and alone.variance is not None
        assert with_judge.variance < 0.8 * alone.variance
        assert with_judge.low95 is not None and with_judge.high95 is not None
        assert with_judge.low95 < level < with_judge.high95
        published = mean_of(studied, "algorithm_1", name)
        assert published.value == pytest.approx(with_judge.value, abs=0.06)
    Submission.objects.update(status="scored")
    shown = read_board(studied.track, distribution="instance", criterion="overall")
    assert all(row.saved is not None and row.saved > 0.2 for row in shown.rows)
    set_scorer_used(studied.track, Scorer.objects.get(name="judge").pk, studied.admin, used=False)
    assert change_signs(studied.track) != before, "the scores are made again"
    score_track(studied.track)
    shown = read_board(studied.track, distribution="instance", criterion="overall")
    assert all(row.saved is not None and row.saved < 0.2 for row in shown.rows)


def test_what_people_differ_by_counts_once_in_the_variance_and_once_in_its_floor(
    studied: World,
) -> None:
    data = load_data(studied.track)
    alone = Centred(data).precision_where_settled("instance", "overall")
    estimate, _ = default_estimates(data, ("overall",), ())["mean", "overall", "instance"]
    added = np.asarray(estimate.variance) - np.asarray(alone.variance)
    assert (added > 0).all()
    floor = np.asarray(estimate.anticipated) - np.asarray(alone.anticipated)
    assert floor == pytest.approx(added)


def test_the_page_tells_what_the_judge_is_worth_with_the_numbers_behind_it(studied: World) -> None:
    score_track(studied.track)
    Submission.objects.update(status="scored")
    told = studied.track.evaluations.latest("number").report.worth["overall"]
    [judge] = told.scorers
    assert judge.worth > 1.5 and judge.worth_80[0] < judge.worth < judge.worth_80[1]
    bias = judge.bias
    a, b = (studied.runs[name].pk for name in "AB")
    assert bias[b] - bias[a] > 0.1, "it likes B better than people do"
    assert sum(judge.quadrants) == pytest.approx(1)
    few = f"PRMSE needs 100 second opinions drawn at random; there are {judge.n_multiple}."
    assert judge.prmse is None and few in judge.prmse_warnings
    assert [len(one) for one in judge.examples] == [
        min(20, round(share * judge.n)) for share in judge.quadrants
    ]
    study = planning_variances(kind_of(studied.track), "overall", told)
    assert study is not None and not study.is_prior
    aided, alone = (asked(study, 0.03, with_scorers=aided) for aided in (True, False))
    assert aided < alone < 2 * asked(study, 0.03, with_scorers=False, people=2)
    page = Client().get("/tracks/answers/metrics/").content.decode()
    assert "judge alone saves " in page and "What limits the worth" in page
    assert page.count(" ×</text>") == 6, "contours of equal worth"
    assert "<title>judge: ρ " in page and "<title>Fluency, judge: ρ " in page
    assert "Example texts appear once their judgments are public" in page
    assert study.leans and "Data of another study are added" in page
    assert "<tbody data-rows>" in page and "js/rows.js" in page
    assert 'data-key="c" data-key-verb="next criterion">Fluency</a>' in page
    assert 'aria-label="Worth ' in page and 'aria-label="γ ' in page, "drawn with intervals"
    assert "human ratings, by system" in page and all(r > 0.5 for r in judge.within.values())
    assert 'class="num strong"' in page or 'class="num some"' in page, "it is biased"
    Label.objects.update(public_at=clock.now())
    shown = Client().get("/tracks/answers/metrics/").content.decode()
    assert shown.count("<blockquote>") == sum(share > 0 for share in judge.quadrants)
    Submission.objects.update(is_private=True)
    assert "<blockquote>" not in Client().get("/tracks/answers/metrics/").content.decode()
    Submission.objects.update(is_private=False)
    assert Client().get("/tracks/answers/metrics/?criterion=z").status_code == 404
    for figure in ("worth", "systems", "width", "judgments", "prompts"):
        file = lines_of(f"/tracks/answers/metrics/?format=csv&figure={figure}").decode()
        rows = list(csv.reader(io.StringIO(file)))
        assert len(rows) > 1 and all(len(row) == len(rows[0]) for row in rows), figure
    assert Client().get("/tracks/answers/metrics/?format=csv&figure=z").status_code == 404


def test_every_figure_of_a_metric_has_its_interval_and_what_must_be_known_of_it(
    studied: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worth, "PAIRS", 10)
    score_track(studied.track)
    told = studied.track.evaluations.latest("number").report.worth["overall"]
    [judge] = told.scorers
    for name in ("pearson", "spearman", "prmse"):
        low, high = getattr(judge, f"{name}_80")
        assert low < getattr(judge, name) < high, name
    means = Estimated(
        np.array([0.2, 0.4, 0.5, 0.9]), np.full(4, 0.02**2), np.full(4, 50), np.zeros((4, 4))
    )
    alone = np.array([0.3, 0.35, 0.6, 0.8])
    between = _system_correlation(means, range(4), alone)
    assert between["between_80"][0] < between["between"] < between["between_80"][1] < 1
    wider = _system_correlation(replace(means, variance=np.full(4, 0.2**2)), range(4), alone)
    assert wider["between_80"][0] < between["between_80"][0]
    two = _system_correlation(means, range(2), alone[:2])
    assert two == {"between": None, "between_80": (None, None)}
    few = f"Only {judge.n_multiple} responses have two ratings"
    assert few in judge.prmse_warnings[0]
    page = Client().get("/tracks/answers/metrics/").content.decode()
    assert page.count(few) == 1, "said once, beneath the table"
    [row] = [
        one
        for one in csv.DictReader(
            io.StringIO(lines_of("/tracks/answers/metrics/?format=csv").decode())
        )
        if one["metric"] == "judge"
    ]
    assert float(row["pearson_low80"]) < float(row["pearson"]) < float(row["pearson_high80"])
    assert row["rated_twice"] == str(judge.n_multiple) and row["prmse_low80"]


def test_before_anybody_rated_plans_rest_on_other_studies(world: World) -> None:
    page = Client().get("/tracks/answers/metrics/").content.decode()
    assert "Needs 50 rated outputs; 0 so far" in page
    study = planning_variances(kind_of(world.track), "fluency", Worth())
    assert study is not None and study.is_prior
    assert study.components.sigma_a2 == pytest.approx(0.323 / 4)
    assert asked(study, 0.05) == 70, "96 with annotator noise in both components"
    [width] = [
        row for row in judgments_by_width(kind_of(world.track), study) if row["half_width"] == 0.05
    ]
    assert width["people_alone"] is None, (
        "so few inputs do not tell it, however many people judge them"
    )


def test_a_board_of_texts_says_for_which_inputs_its_intervals_hold(studied: World) -> None:
    score_track(studied.track)
    Submission.objects.update(status="scored")
    score_track(studied.track)  # ranks are of those on the board
    widths, page = {}, "/tracks/answers/"
    numbers = [studied.runs[name].pk for name in "AB"]
    for asked, population, said in (
        ("", "like", "inputs like these"),
        ("?population=these", "these", "these inputs alone"),
    ):
        shown = Client().get(f"{page}{asked}").content.decode()
        assert "Intervals hold for" in shown and said in shown
        file = Client().get(f"{page}board.csv{asked}").content.decode()
        rows = list(csv.DictReader(io.StringIO(file)))
        assert {row["population"] for row in rows} == {population}
        told = Client().get(f"/api{page}board/{asked}").json()
        assert told["population"] == population
        ends = [system["mean"] for system in told["systems"]]
        board_widths = [one["high80"] - one["low80"] for one in ends]
        assert [float(row["mean_high80"]) for row in rows] == [one["high80"] for one in ends]
        address = f"/api{page}compare/?a={numbers[0]}&b={numbers[1]}&{asked[1:]}"
        compared = Client().get(address).json()
        [difference] = compared["differences"]
        assert (
            compared["population"] == population and f"population={population}" in compared["page"]
        )
        page_of_both = Client().get(compared["page"].split("testserver")[-1]).content.decode()
        assert "Each interval is valid by itself, for" in page_of_both
        widths[population] = [*board_widths, difference["high80"] - difference["low80"]]
    assert all(np.array(widths["like"]) > 1.1 * np.array(widths["these"]))
    assert Client().get(f"{page}?population=others").status_code == 404
    run = Client().get(f"/submissions/{numbers[0]}/").content.decode()
    assert "The intervals hold for inputs like these." in run


def test_the_plan_of_a_run_and_the_table_of_metrics_say_the_same(world: World) -> None:
    world.track.workers_per_question = 1
    keys = [f"input {at}" for at in range(200)]
    more = [Input(corpus=world.track.corpus, key=key) for key in keys[4:]]
    Input.objects.bulk_create(more)
    run = world.add("C", [f"text {at}" for at in range(200)])
    options = design_of(world.track).draft_options(run, ["0.050", "0.020"])
    study = planning_variances(kind_of(world.track), world.track.criterion, Worth())
    table = {
        row["half_width"]: row["people_alone"]
        for row in judgments_by_width(kind_of(world.track), study)
    }
    assert options["0.050"]["new"] == table[0.05] < 200 and "all_judged" not in options["0.050"]
    assert options["0.020"]["new"] == 200 and table[0.02] is None
    assert 0.02 < float(options["0.020"]["all_judged"]) < 0.05, "not with these inputs"
    told = list_quotes(run, options)
    assert [one.population for one in told] == ["inputs like these"] * 2
    assert told[0].all_judged is None and told[1].all_judged is not None


def test_what_was_measured_here_is_planned_from_alone_once_enough_were_asked_twice(
    world: World,
) -> None:
    components = Components(sigma_f2=0.025, sigma_a2=0.0125, gamma=0.5, repeated=40)
    told = Worth(180, 220, components, together=MetricScorer("all", "all", r=0.7))
    study = planning_variances(kind_of(world.track), "overall", told)
    assert study is not None and asked(study, 0.05, with_scorers=False) == 25
    assert study.rho == pytest.approx(0.7 * 1.5**0.5) and asked(study, 0.05) == 13
    few = replace(components, repeated=5, warnings=("Only 5 outputs …",))
    rough = planning_variances(kind_of(world.track), "overall", replace(told, components=few))
    assert rough is not None and rough.leans and not study.leans
    assert 0.0125 < rough.components.sigma_a2 < 0.07
    taken = rough.rho**2 * rough.components.sigma_f2
    assert taken == pytest.approx(study.rho**2 * 0.025), "what the metrics take away was measured"


def test_no_rating_has_a_say_in_what_is_guessed_of_its_own_output(studied: World) -> None:
    data = load_data(studied.track)
    pool, f = data.pool, data.f["overall"][:, 0]
    label = np.full(pool.instance.size, np.nan)
    label[data.judged] = f
    first = guess_ratings(pool, label, key="k")
    changed = label.copy()
    row = int(data.judged[0])
    changed[row] = 1 - label[row]
    second = guess_ratings(pool, changed, key="k")
    owner = pool.member.toarray().argmax(axis=1)
    fold = keyed_folds((int(one) for one in pool.target_id), FOLDS, key=b"k")[pool.target]
    inside = (first.g > 0.01) & (first.g < 0.99) & (second.g > 0.01) & (second.g < 0.99)
    beside = (owner == owner[row]) & (fold == fold[row]) & inside
    # The level of a system is the mean of all its ratings: a constant, which centring takes out.
    moved = (second.g - first.g)[beside]
    assert beside.sum() > 5 and moved == pytest.approx(moved[0], abs=1e-9)
    alone = guess_ratings(pool, label, key="k", with_scorers=False)
    assert (alone.g == 0.5).all() and alone.error is not None and first.error is not None
    assert first.error.mean() < 0.7 * alone.error.mean()


def test_a_plan_asks_for_less_where_a_judge_helps_and_counts_what_people_differ_by(
    studied: World,
) -> None:
    aided = State(studied.runs["B"])
    Scorer.objects.update(is_used=False)
    alone = State(studied.runs["B"])
    assert aided.v.mean() < 0.7 * alone.v.mean()
    assert aided.noise > 0 and aided.planned_variance > aided.noise
    goal = aided.planned_variance / 2
    assert aided.thresholds_for(goal).sum() < alone.thresholds_for(goal).sum()
    assert (aided.thresholds_for(aided.noise / 2) > 0.9).all(), (
        "what people differ by cannot be asked away"
    )


def test_a_run_ends_when_its_rank_is_decided_and_only_where_the_track_says_so(
    studied: World,
) -> None:
    track = studied.track
    Submission.objects.update(plan={"chosen": "0.005", "options": {"0.005": {"each": "0"}}})
    [first, second] = studied.runs["A"], studied.runs["B"]
    score_track(track, [first])
    first.refresh_from_db()
    assert first.status == "confirmed", "its interval is far too wide: on to the next stage"
    track.ends_when_ranked = True
    track.save()
    Submission.objects.update(status="judging")
    score_track(track, [first, second])
    for run in (first, second):
        run.refresh_from_db()
        assert (run.status, run.stage_reason) == ("scored", "ranked")
    assert "Its rank is decided" in END_REASONS["ranked"]
    told = Submission._meta.get_field("stage_reason").help_text.removeprefix("Why it stopped: ")
    assert set(told.split(", ")) == set(END_REASONS)


def test_the_board_draws_both_widths_and_what_the_judge_alone_would_say(
    studied: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = set_submission_role(studied.runs["A"], "reference", studied.admin)
    Submission.objects.update(status="scored")
    score_track(studied.track)
    shown = read_board(studied.track, distribution="instance", criterion="overall")
    ranks = {row.submission.name: row.rank for row in shown.rows}
    assert ranks == {"A": None, "B": (1, 1)}, "who is behind the reference alone is first"
    address = "/tracks/answers/?criterion=overall"
    page = Client().get(address).content.decode()
    assert page.count('class="iv-alone"') == 3 * (2 * 3 + 1), (
        "two rows of three figures, and the legend, three lines each"
    )
    assert "; people alone " in page and "judge alone" not in page
    row = page[page.index('class="reference"') :]
    assert ">–</td>" in row[: row.index("</tr>")]
    mean = mean_of(studied, "unaided", "B")
    assert mean.low80 is not None and mean.high80 is not None
    people = Client().get(f"{address}&helped=0").content.decode()
    written = f"{100 * mean.low80:.1f}–{100 * mean.high80:.1f}"
    assert written in people.replace("; people alone", "") and 'class="iv-alone"' not in people
    assert people.count("none saved") == page.count("none saved") == 0
    monkeypatch.setattr("kbpo.web.public.board.board_or_404", None)
    for wrong in ("999", "best", "-1"):
        assert Client().get(f"{address}&helped={wrong}").status_code == 404
    monkeypatch.undo()
    Submission.objects.filter(pk=reference.pk).update(role="system")
    assert change_signs(studied.track)["references"] == [], "ranks are made again"


def test_only_an_admin_says_what_is_a_reference(studied: World) -> None:
    run = studied.runs["A"]
    writer = run.team.members.first() or User.objects.create_user("writer", password="x")
    run.team.members.add(writer)
    for who, role in ((writer, "system"), (studied.admin, "reference")):
        client = Client()
        client.force_login(who)
        said = {"name": "A", "description": "", "role": "reference"}
        assert client.post(f"/submissions/{run.pk}/edit/", said).status_code == 302
        run.refresh_from_db()
        assert run.role == role
    answer = client.post(f"/submissions/{run.pk}/edit/", said | {"role": "king"})
    assert answer.status_code == 400 and "king is not one of" in answer.content.decode()


def asked(study: Study, half_width: float, **by: Any) -> int:
    """How many of 100,000 outputs are judged, so that there might as well be no end of them."""
    plan = Draft.with_equal_weights(100_000).with_study(study, **by)
    return plan.questions(plan.thresholds((half_width / norm.ppf(0.9)) ** 2))


def rated_by(n_people: int, level: float, first: float = 0.0) -> None:
    """Give all ratings to so many people, who are stricter and milder in turns; the `first` gives
    that share of them, and the others the rest in turns.
    """
    for at, label in enumerate(Label.objects.order_by("pk")):
        who = 0 if at % 100 < 100 * first else at % n_people
        moved = {
            criterion: [min(1.0, max(0.0, one + (level if who % 2 else -level))) for one in said]
            for criterion, said in label.value["ratings"].items()
        }
        people = {criterion: [f"judge {who}"] * len(said) for criterion, said in moved.items()}
        Label.objects.filter(pk=label.pk).update(value={"ratings": moved, "people": people})


def test_people_with_levels_of_their_own_widen_the_interval(studied: World) -> None:
    widths = []
    for level in (0.0, 0.2):
        rated_by(6, level)
        score_track(studied.track)
        data = load_data(studied.track)
        estimate, _ = default_estimates(data, ("overall",), ())["mean", "overall", "instance"]
        printed = [mean_of(studied, "centred_these", name).variance for name in "AB"]
        widths.append(np.array(printed, dtype=float) / np.asarray(estimate.variance))
    assert widths[0] == pytest.approx(1.0, abs=0.2) and (widths[1] > 1.21).all()


def test_systems_are_not_ranked_where_one_person_gave_more_than_half(studied: World) -> None:
    rated_by(6, 0.0, first=0.6)
    Submission.objects.update(status="scored")
    score_track(studied.track)
    shown = read_board(studied.track, distribution="instance", criterion="overall")
    assert "One person gave more than half" in " ".join(board_reliability_sentences(shown))
    assert all(row.rank is None for row in shown.rows) and not shown.groups


def test_a_run_is_scored_by_prompt_and_split_where_inputs_have_few_of_them(studied: World) -> None:
    corpus = studied.track.corpus
    Input.objects.filter(corpus=corpus).delete()
    inputs = [
        Input(
            corpus=corpus, key=f"input {at}", prompt="Be\nbrief." if at % 3 else "", split=str(at)
        )
        for at in range(MANY)
    ]
    Input.objects.bulk_create(inputs)
    Submission.objects.update(status="scored")
    evaluation = score_track(studied.track)
    of = {"slice": "prompt:Be brief.", "criterion": "overall"}
    of_a = figure_of(evaluation, studied.runs["A"], **of)
    assert of_a.n_predictions == MANY * 2 // 3 and 0.4 < of_a.value < 0.8
    assert {key.slice for key in evaluation.details.figures} == {"prompt:Be brief."}, (
        "a split of its own for each input cuts nothing, and no prompt is no slice"
    )
    client = Client()
    client.force_login(studied.admin)
    page = client.get(f"/submissions/{studied.runs['A'].pk}/").content.decode()
    assert "includes predictions drawn for other runs." in page, "nobody reads documents here"
    assert "Overall by prompt" in page and "Be brief." in page


def test_what_was_judged_elsewhere_whole_is_drawn_whole(studied: World) -> None:
    SampleBatch.objects.all().delete()
    run, others = Submission.objects.order_by("name")
    Label.objects.update(source="import")
    left = Instance.objects.filter(predictions__submission=run, target__labels__isnull=True)
    said = {"ratings": {name: [0.5] for name in CRITERIA}}
    record_labels(NewLabel(one.target_id, said, "import", "ratings", 1, "") for one in list(left))
    targets = {row.pk: sorted(State(row).target_id.tolist()) for row in (run, others)}
    assert not poisson._is_imported(others, targets[others.pk]), "half of it is judged"
    assert design_of(studied.track).sample_next_batch(run) == MANY
    assert set(Threshold.objects.values_list("pi", flat=True)) == {1.0}
    Label.objects.filter(target=targets[run.pk][0]).update(source="crowd")
    assert not poisson._is_imported(run, targets[run.pk]), "it was answered because it was drawn"
