"""The model of ratings: the regression that it says, no rating guesses itself,
weak metrics cost nothing.
"""

import numpy as np
import pytest
from scipy import sparse

from estimators.rating_model import SCALES, RatingModel, fit_ratings


def world(rng, n_inputs=30, m=4, rated=0.7):
    """Return a small track: metrics, system, input, words, fold and ratings in [0, 1]."""
    system = np.tile(np.arange(m), n_inputs)
    source = np.repeat(np.arange(n_inputs), m)
    metrics = rng.normal(0, 1, (system.size, 3))
    words = rng.poisson(0.7, (system.size, 12)).astype(float)
    f = 0.5 + 0.08 * metrics[:, 0] + rng.normal(0, 0.1, n_inputs)[source]
    y = np.clip(f + rng.normal(0, 0.05, system.size), 0, 1)
    rating = np.where(rng.random(system.size) < rated, y, np.nan)
    return metrics, system, source, words, np.arange(system.size) % 5, rating


def dense(metrics, system, source, words, rating, fold, k, model):
    """Return the guesses of one fold by the covariance matrix itself, as the docstring has it."""
    m = system.max() + 1
    ranks = np.empty_like(metrics)
    for code in range(m):
        ranks[system == code] = metrics[system == code].argsort(axis=0).argsort(axis=0)
    metrics = np.hstack([metrics, ranks])
    standard = np.empty_like(metrics)
    for code in range(m):
        own = metrics[system == code]
        standard[system == code] = (own - own.mean(axis=0)) / own.std(axis=0)
    same, together = system[:, None] == system, source[:, None] == source
    learn = np.flatnonzero(~np.isnan(rating) & (fold != k))
    mean = np.array([rating[learn][system[learn] == s].sum() for s in range(m)])
    count = np.bincount(system[learn], minlength=m)
    mean = (mean + rating[learn].mean()) / (count + 1)
    deviation = rating[learn] - mean[system[learn]]
    squares = np.bincount(system[learn], deviation**2, m)
    size = np.sqrt((squares + 5 * squares.sum() / learn.size) / (count + 5))
    y = deviation / size[system[learn]]
    centred_y, centred = y.copy(), standard[learn].copy()
    for code in range(m):
        own = system[learn] == code
        centred_y[own] -= centred_y[own].mean()
        centred[own] -= centred[own].mean(axis=0)
    r = (centred.T @ centred_y) / np.linalg.norm(centred, axis=0) / np.linalg.norm(centred_y)
    weight = np.sqrt(np.maximum(r**2 - 1 / learn.size, 0))
    weight = np.maximum(weight, 0.1 * weight.max())
    standard = standard * weight / np.sqrt((weight**2).mean())
    unit = words / np.maximum(np.linalg.norm(words, axis=1), 1e-300)[:, None]
    values, vectors = np.linalg.eigh(standard.T @ standard / len(standard))
    white = (standard @ vectors / np.sqrt(values))[:, -5:]
    a, b, c, d = model.scales[k]
    covariance = a * standard @ standard.T / 6 + b * same * (white @ white.T) / 5
    covariance += c * together + d * together * (unit @ unit.T) + 1e4 * same
    solved = np.linalg.solve(covariance[np.ix_(learn, learn)] + np.eye(learn.size), y)
    raw = covariance[:, learn] @ solved
    centre = np.bincount(system, raw, m) / np.bincount(system)
    scale = size[system] * model.trust[k][system]
    return (scale * (raw - centre[system]))[fold == k]


@pytest.mark.parametrize("with_text", [True, False])
def test_the_guess_is_that_of_the_gaussian_process_that_is_written_down(with_text):
    metrics, system, source, words, fold, rating = world(np.random.default_rng(0))
    text = sparse.csr_array(words) if with_text else None
    model = fit_ratings(metrics, rating, fold, system=system, input=source, text=text)
    shown = words if with_text else np.zeros_like(words)
    rated = ~np.isnan(rating)
    count = np.bincount(system[rated])
    level = (np.bincount(system[rated], rating[rated]) + rating[rated].mean()) / (count + 1)
    for k in range(5):
        expected = dense(metrics, system, source, shown, rating, fold, k, model)
        here = fold == k
        np.testing.assert_allclose(model.g[here], level[system[here]] + expected, atol=1e-7)


def test_no_rating_has_a_say_in_its_own_guess():
    metrics, system, source, words, fold, rating = world(np.random.default_rng(1))
    options = {"system": system, "input": source, "text": words}
    before = fit_ratings(metrics, rating, fold, **options)
    for row in np.flatnonzero(~np.isnan(rating))[:4]:
        changed = rating.copy()
        changed[row] = 1 - changed[row]
        after = fit_ratings(metrics, changed, fold, **options)
        # Only the level of the system moves, for all its outputs alike.
        own = (system == system[row]) & (fold == fold[row])
        moved = after.g[own] - before.g[own]
        np.testing.assert_allclose(moved, moved[0], atol=1e-9)
        np.testing.assert_array_equal(after.scales[fold[row]], before.scales[fold[row]])
        elsewhere = (system == system[row]) & (fold != fold[row])
        assert np.ptp(after.g[elsewhere] - before.g[elsewhere]) > 1e-6


def left(rating, g):
    known = ~np.isnan(rating)
    return float(np.var((rating - g)[known]) / np.var(rating[known]))


def test_metrics_the_input_and_similar_texts_each_explain_what_they_can():
    rng = np.random.default_rng(2)
    n_inputs, m = 80, 5
    system, source = np.tile(np.arange(m), n_inputs), np.repeat(np.arange(n_inputs), m)
    n, rows = system.size, np.arange(n_inputs * m)
    fold, nothing = rng.integers(0, 5, n), np.zeros((n, 1))
    hard = rng.normal(0, 0.15, n_inputs)[source]
    text = np.zeros((n, 2 * n_inputs))
    kind = rng.integers(0, 2, n)  # two things may be said of an input
    text[rows, 2 * source + kind] = 1.0
    said = rng.normal(0, 0.15, 2 * n_inputs)[2 * source + kind]
    for f, options in (
        (hard, {"input": source}),
        (said, {"input": source, "text": text}),
    ):
        rating = np.clip(0.5 + f + rng.normal(0, 0.05, n), 0, 1)
        alone = fit_ratings(nothing, rating, fold, system=system, input=rows)
        model = fit_ratings(nothing, rating, fold, system=system, **options)
        assert left(rating, alone.g) > 0.95
        assert left(rating, model.g) < 0.4


def test_a_judge_that_is_nearly_always_sure_says_more_by_its_order():
    rng = np.random.default_rng(5)
    rows, system = np.arange(400), np.zeros(400, dtype=int)
    order = rng.uniform(0, 1, 400)
    rating = np.clip(order + rng.normal(0, 0.1, 400), 0, 1)
    sure = order**30  # next to nothing but for a few, and these far apart
    model = fit_ratings(sure[:, None], rating, rows % 5, system=system, input=rows)
    assert left(rating, model.g) < 0.2 < 1 - np.corrcoef(sure, rating)[0, 1] ** 2


def test_metrics_that_say_nothing_are_not_trusted():
    rng = np.random.default_rng(3)
    more = []
    for _ in range(10):
        metrics, rating = rng.normal(0, 1, (200, 10)), rng.uniform(0, 1, 200)
        rows = np.arange(200)
        system = rows % 2
        model = fit_ratings(metrics, rating, rows % 10, system=system, input=rows)
        level = np.bincount(system, rating)[system] / 100
        more.append(left(rating, model.g) / left(rating, level))
    assert np.mean(more) < 1.005


def test_few_ratings_give_the_level_and_none_the_middle():
    metrics, rows = np.ones((6, 1)), np.arange(6)
    options = {"system": np.zeros(6, dtype=int), "input": rows}
    some = np.array([0.2, 0.4, np.nan, np.nan, np.nan, np.nan])
    assert fit_ratings(metrics, some, rows % 2, **options).g == pytest.approx(np.full(6, 0.3))
    none = fit_ratings(metrics, np.full(6, np.nan), rows % 2, **options, low=1, high=6)
    assert isinstance(none, RatingModel)
    assert none.g.tolist() == [3.5] * 6


def test_a_missing_metric_and_a_system_without_ratings_have_guesses():
    metrics, system, source, words, fold, rating = world(np.random.default_rng(4))
    metrics[system == 1, 1] = np.nan
    rating[system == 2] = np.nan
    model = fit_ratings(metrics, rating, fold, system=system, input=source, text=words)
    assert np.isfinite(model.g).all()
    assert np.ptp(model.g[system == 2]) > 0.01


def test_an_earlier_fit_is_where_the_search_begins():
    metrics, system, source, words, fold, rating = world(np.random.default_rng(5))
    options = {"system": system, "input": source, "text": words}
    first = fit_ratings(metrics, rating, fold, **options)
    again = fit_ratings(metrics, rating, fold, **options, start=first)
    np.testing.assert_allclose(again.g, first.g, atol=1e-9)
    assert set(np.unique(first.scales)) <= set(SCALES)
    kept = fit_ratings(metrics, 1 - rating, fold, **options, start=first, search=False)
    np.testing.assert_array_equal(kept.scales, first.scales)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rating": [0.5, 1.5, 0, 1]}, "rating"),
        ({"features": [[1.0], [2], [np.inf], [1]]}, "features"),
        ({"features": [[1.0]]}, "features"),
        ({"fold": [0, 1]}, "fold"),
        ({"text": np.ones((2, 2))}, "text"),
        ({"text": -np.ones((4, 2))}, r"-1\.0"),
        ({"low": 1.0, "high": 0.0}, "low"),
    ],
)
def test_it_names_what_it_cannot_use(change, message):
    arguments = {
        "features": np.ones((4, 1)),
        "rating": [0.5, 0.5, 0, 1],
        "fold": [0, 1, 0, 1],
        "system": [0, 0, 1, 1],
        "input": [0, 1, 0, 1],
    } | change
    with pytest.raises(ValueError, match=message):
        fit_ratings(**arguments)


def test_metrics_of_any_size_are_standardised_alike():
    metrics, system, source, _, fold, rating = world(np.random.default_rng(5))
    plain = fit_ratings(metrics, rating, fold, system=system, input=source)
    for size in (2.0**-40, 2.0**600, 2.0**1020):
        large = fit_ratings(metrics * size, rating, fold, system=system, input=source)
        np.testing.assert_allclose(large.g, plain.g, rtol=1e-9)


def test_an_offset_of_the_metrics_changes_no_guess():
    metrics, system, source, _, fold, rating = world(np.random.default_rng(5))
    plain = fit_ratings(metrics, rating, fold, system=system, input=source)
    far = fit_ratings(metrics + 1e8, rating, fold, system=system, input=source)
    np.testing.assert_allclose(far.g, plain.g, atol=1e-5)
