"""Measures the coverage of intervals of mean ratings for inputs like these, and for these inputs.

usage: python benchmarks/populations.py [REPEATS] (default: 1,000)

Real judgments (../shared/data/nlg), resampled: inputs with replacement, then one judgment of each
output, of which a share is judged (each text with that chance; `g`: with metrics, else without).
Printed is the mean over systems, or pairs of systems, of how often an 80 % interval holds the mean
of all judgments of all inputs ("like"), or of the inputs that were drawn ("these"); `ranks`: how
often all rank ranges of 95 % hold the ranks, all systems at once. Below: of realsumm's board, as it
was judged, by how much the widest deviation of a width from that of a bootstrap over inputs is.
"""

import sys
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.special import stdtrit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import judged_texts, tables
from estimators.multiple import rank_intervals, simultaneous_intervals
from estimators.rating_model import fit_ratings
from estimators.ratings import expected_rating_error, judgment_variance
from scoring.compare import covariance_of
from scoring.data import Data, Noise, SingleRatings
from scoring.documents import Annotated
from scoring.inclusion import Inclusion
from scoring.inputs import estimates_for_similar_inputs
from scoring.pool import Pool
from scoring.score import default_estimates

LEVEL, RANKS = 0.8, 0.95
KEY = ("mean", "it", "instance")
SAME = 1e-12  # an end that is the truth holds it, whatever is rounded


def board_data(judged, inputs, share, rng, *, aided=False, every=False):
    """Return the data of a board of these inputs (places, with repetitions), each text judged with
    the chance `share` by one person, or by `every` one; and its truth, the mean of all judgments.
    """
    rows = [np.flatnonzero(judged.input == one) for one in inputs]
    at, code = np.concatenate(rows), np.repeat(np.arange(len(rows)), [r.size for r in rows])
    m, t = len(judged.systems), at.size
    owner = judged.system[at]
    size = np.bincount(owner, minlength=m)
    p = sparse.csr_array((1 / size[owner], (np.arange(t), owner)), shape=(t, m))
    drawn = rng.random(t) < share
    said = np.where(every, judged.ratings[at], np.nan)
    if not every:  # and a second opinion of a few, as the service asks for it
        said[:, 0] = judged.draw(at, rng)
        second = rng.permutation(np.flatnonzero(drawn))[: int(np.clip(0.05 * drawn.sum(), 20, 40))]
        said[second, 1] = judged.draw(at[second], rng)
    rating, count = np.nanmean(said, axis=1), (~np.isnan(said)).sum(axis=1)
    within = np.nansum((said - rating[:, None]) ** 2, axis=1)
    single, whose = said[drawn], np.broadcast_to(np.arange(t)[:, None], said.shape)[drawn]
    noise = judgment_variance(single.ravel(), whose.ravel())
    label = np.where(drawn, rating, np.nan)
    g = np.full(t, 0.5)
    mean = np.nanmean(label)
    level = np.array([np.nansum(label[owner == i]) + mean for i in range(m)])
    expected = (level / (np.array([drawn[owner == i].sum() for i in range(m)]) + 1))[owner]
    if aided:
        features = np.nan_to_num(judged.standardised()[at])
        fold = rng.integers(5, size=t)
        g = expected = fit_ratings(features, label, fold, system=owner, input=code, text=None).g
    none, row = np.zeros(t, dtype=np.int64), np.flatnonzero(drawn)
    nobody = SingleRatings(none[:0], none[:0], np.zeros(0))
    data = Data(
        pool=Pool(
            systems=list(range(m)), teams=[0] * m, instance=np.arange(t), target=np.arange(t),
            target_id=np.arange(t), u=np.zeros(t), document=none, stratum=none, types=none,
            subject=none, object=none, p={"instance": p}, confidence=p,
        ),
        shown=np.ones(m, dtype=np.bool_), judged=row,
        f={"it": np.repeat(rating[row, None], m, axis=1)}, draws={},
        inclusion=Inclusion(np.full(t, share), drawn, np.full(t, share), 1.0),
        g={"it": g}, rho={"it": 0.0}, base="it", unweighed="instance", facts=None,
        documents=Annotated([], []), mark=np.full(t, -1.0),
        noise={"it": Noise(count[row], noise, nobody, within=within[row])},
        error={"it": expected_rating_error(label, expected, owner)[owner]},
        input=code, population="like",
    )  # fmt: skip
    truth = np.bincount(owner, judged.mean[at], minlength=m) / size
    return data, truth


def covering_shares(found, truth):
    """Return the shares of systems, and of pairs, whose interval contains the truth, and whether
    all ranges of ranks contain the ranks.
    """
    estimate, design = found
    low, high = estimate.confidence_interval(LEVEL, method="wilson")
    means = np.mean((np.asarray(low) <= truth + SAME) & (truth <= np.asarray(high) + SAME))
    covariance = covariance_of(estimate, design, np.arange(truth.size))
    df = max(1.0, float(np.min(estimate.degrees_of_freedom)))
    i, k = np.triu_indices(truth.size, 1)
    error = np.sqrt(covariance[i, i] + covariance[k, k] - 2 * covariance[i, k])
    apart = np.asarray(estimate.value)[i] - np.asarray(estimate.value)[k] - (truth[i] - truth[k])
    pairs = np.mean(np.abs(apart) <= stdtrit(df, 0.5 + LEVEL / 2) * error + 1e-12)
    family = simultaneous_intervals(
        estimate.value, covariance, rng=np.random.default_rng(1), confidence_level=RANKS,
        repeats=2000, degrees_of_freedom=df,
    )  # fmt: skip
    ranks, place = rank_intervals(family), (-truth).argsort().argsort() + 1
    return means, pairs, np.all((ranks.best <= place) & (place <= ranks.worst))


def measure_coverage(judged, n, share, repeats, *, aided):
    """Return coverages about inputs like these (means, pairs, ranks), then about these."""
    rng, found = np.random.default_rng([n, repeats, int(100 * share)]), []
    everything = np.bincount(judged.system, judged.mean) / np.bincount(judged.system)
    n_inputs = judged.input.max() + 1
    for _ in range(repeats):
        data, truth = board_data(judged, rng.integers(n_inputs, size=n), share, rng, aided=aided)
        these = default_estimates(data, ("it",), ())
        like = estimates_for_similar_inputs(data, these)
        found.append([*covering_shares(like[KEY], everything), *covering_shares(these[KEY], truth)])
    return np.mean(found, axis=0).tolist()


def width_deviations(judged, repeats=4000):
    """Return the largest deviations, below and above, of the widths of a board that is all judged
    from those of a bootstrap over inputs.
    """
    rng, n, m = np.random.default_rng(0), judged.input.max() + 1, len(judged.systems)
    data, _ = board_data(judged, np.arange(n), 1.0, rng, every=True)
    estimate, _ = estimates_for_similar_inputs(data, default_estimates(data, ("it",), ()))[KEY]
    low, high = estimate.confidence_interval(LEVEL, method="wilson")
    table = np.full((n, m), np.nan)
    table[judged.input, judged.system] = judged.mean
    means = np.array([np.nanmean(table[rng.integers(n, size=n)], axis=0) for _ in range(repeats)])
    ratio = (high - low) / np.subtract(*np.quantile(means, [0.9, 0.1], axis=0))
    return ratio.min() - 1, ratio.max() - 1


def main() -> None:
    """Print the tables of coverages and widths."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    if not judged_texts.has_data():
        return
    rows = []
    for name, criterion, sizes in (
        ("xsum_faithfulness", "faithful_words", (20, 50, 100)),
        ("xsum_faithfulness", "faithful", (20, 50, 100)),
        ("realsumm", "litepyramid_recall", (20,)),
    ):
        judged = judged_texts.read_set(name, criterion)
        for n in sizes:
            for share in (0.25, 0.5, 1.0):
                for aided in (False, True) if n == 50 and share < 1 else (False,):
                    row = [f"{name}, {criterion}", n, share, "g" if aided else ""]
                    rows.append(row + measure_coverage(judged, n, share, repeats, aided=aided))
                    print(*row, *(f"{one:.3f}" for one in rows[-1][4:]), flush=True)
    of = [f"{what}, {whom}" for whom in ("like", "these") for what in ("means", "pairs", "ranks")]
    tables.print_and_write("populations", ["judgments", "inputs", "judged", "model", *of], rows)
    realsumm = judged_texts.read_set("realsumm", "litepyramid_recall")
    print(
        "\nwidths against a bootstrap over inputs, realsumm: {:+.1%} to {:+.1%}".format(
            *width_deviations(realsumm)
        )
    )


if __name__ == "__main__":
    main()
