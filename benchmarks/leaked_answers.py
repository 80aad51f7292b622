"""Runs that are made from the answers of somebody else's: how far everybody's numbers are off, how
often an honest run is taken for one, and how often such a run is found.

usage: python benchmarks/leaked_answers.py [REPEATS]        (default: 12)

The real runs on Re-DocRED, weighted by instance. One run is read from: thresholds to a half-width at
80 %, all that is drawn is judged. Then another run comes:

leak        the first one without what was judged wrong             (`adds`: a run of another team without that, and
sabotage    the first one without what was judged right              with what was judged right of the first)
masked      the leak, and as much of what was not judged deleted at random
honest      the other real runs, as they are; unions, intersections and majorities of others' runs, with the one that
            is read from and without; that one cut at a confidence, or to some relations

second      of the same team: the first one without what was judged wrong, and what another run states beside it. Its
            sample is drawn and judged, and the others are tested against it: against all that it predicts, and, as the
            service does, against what was still to be drawn when its team decided on it

`flagged` is the share with p ≤ 0.001 after Holm over as many earlier runs as there are. Errors are in points, of a
board of three: the run that was read from, one that has nothing to do with it, and the new one, which is
`believed` (judged as anybody's), or `treated` as one that has seen the answers and kept out of the model.

KBPO_SHARED_DATA names the folder that holds redocred/ if it is not ../shared/data.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import redocred, tables
from benchmarks.arrivals import LEVEL, World, Z, worlds
from benchmarks.our_rule import Board, Run, arrive, measure
from estimators import horvitz_thompson, leaks, model, poisson, seen

ALPHA, EARLIER, FOLDS = 0.001, 27, 5
N_DOCUMENTS = 500
HALF_WIDTHS = (0.10, 0.05, 0.03)
UNTIL = "anticipated"
USED = (1.0, 0.5, 0.25, 0.1, 0.05)


def sampled(world: World, i: int, half_width: float, rng: np.random.Generator):
    """Return thresholds and who was drawn, (t,), for a run alone on the board."""
    pi = thresholds(world, world.member[:, i] > 0, half_width)
    return pi, rng.random(pi.size) < pi


def thresholds(world: World, run: np.ndarray, half_width: float) -> np.ndarray:
    """Return thresholds, (t,), for a run (a column of members) alone on the board."""
    own = np.flatnonzero(run)
    pi = np.zeros(world.n_targets)
    names = world.target[own]
    code = np.unique(names, return_inverse=True)[1]
    goal = (half_width / Z) ** 2
    p = np.full(own.size, 1 / own.size)
    pi[names] = poisson.water_fill(p, np.zeros(own.size), 0.25, target_variance=goal, target=code)
    return pi


def tested(
    world: World,
    states: np.ndarray,
    run: np.ndarray,
    pi: np.ndarray,
    drawn: np.ndarray,
    open_: np.ndarray | None = None,
) -> float:
    """Return the p-value of a run (a column of members) against the sample of another, or against
    some of its targets.
    """
    states, base = states > 0, nearest(world, run)
    count = np.bincount(world.target[states], minlength=pi.size)
    both = np.bincount(world.target[states & run], minlength=pi.size)
    inside = count > 0 if open_ is None else (count > 0) & open_
    near = np.bincount(world.target[states & base], minlength=pi.size) > 0
    beside = (world.member > 0).sum(axis=1) - 1
    others = np.bincount(world.target[states], weights=beside[states], minlength=pi.size)
    sample = pi[inside], drawn[inside], (both == count)[inside]
    share = leaks.share_test(*sample, stratum=near[inside].astype(int))
    level = leaks.levels((others / np.maximum(count, 1))[inside], pi[inside])
    return leaks.either(share, leaks.contrast_test(*sample, level)).p_value


def nearest(world: World, run: np.ndarray) -> np.ndarray:
    """Return the members of the real run that a run is most like."""
    both = world.member.T @ run.astype(float)
    likeness = both / np.maximum(world.member.sum(axis=0) + run.sum() - both, 1)
    return world.member[:, int(likeness.argmax())] > 0


def honest_runs(world: World, i: int, rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    """Yield runs that were made without looking at any answer."""
    member = world.member > 0
    others = [k for k in range(member.shape[1]) if k != i]
    for k in others:
        yield "real runs of others", member[:, k]
    for with_it in (False, True):
        some = list(rng.choice(others, 3 - with_it, replace=False)) + [i] * with_it
        votes = member[:, some].sum(axis=1)
        of = "with the one read from" if with_it else "without"
        yield f"ensembles {of}", votes >= 1
        yield f"ensembles {of}", votes >= 2
        yield f"ensembles {of}", votes >= 3
    mine = member[:, i]
    yield (
        "cut at a confidence",
        mine & (world.confidence[:, i] >= np.median(world.confidence[mine, i])),
    )
    kept = rng.random(world.predicate.max() + 1) < 0.5
    yield "cut to some relations", mine & kept[world.predicate]
    yield "cut at random", mine & (rng.random(mine.size) < 0.7)


def false_alarms(world: World, repeats: int, rng: np.random.Generator) -> list[list[object]]:
    """Return how often an honest run is flagged, by what it is made of."""
    found: dict[str, list[float]] = {}
    for _ in range(repeats):
        i = int(rng.integers(world.member.shape[1]))
        pi, drawn = sampled(world, i, float(rng.choice(HALF_WIDTHS)), rng)
        for name, run in honest_runs(world, i, rng):
            p = tested(world, world.member[:, i], run, pi, drawn)
            found.setdefault(name, []).append(p)
    found["all"] = [p for some in found.values() for p in some]
    return [
        [name, len(p), *(float(np.mean(np.array(p) <= level)) for level in (0.1, 0.01, ALPHA)),
         float(np.min(p))]
        for name, p in found.items()
    ]  # fmt: skip


def made_from(world: World, i: int, drawn: np.ndarray, used: float, how: str, rng) -> np.ndarray:
    """Return a run that is made from a share of the answers to run i's sample."""
    mine, judged = world.member[:, i] > 0, drawn[world.target]
    true = world.true == 1
    told = judged & mine & (rng.random(mine.size) < used)
    if how == "sabotage":
        return mine & ~(told & true)
    if how == "adds":
        other = world.member[:, int(rng.choice(np.flatnonzero(world.team != world.team[i])))] > 0
        return (other & ~(told & ~true)) | (told & true)
    kept = mine & ~(told & ~true)
    if how == "masked":
        share = (told & ~true).sum() / max((judged & mine).sum(), 1)
        return kept & (judged | (rng.random(mine.size) >= share))
    return kept


def power(world: World, repeats: int, rng: np.random.Generator) -> list[list[object]]:
    """Return how often a run that is made from answers is flagged."""
    table: list[list[object]] = []
    for how in ("leak", "sabotage", "adds", "masked"):
        for half_width in HALF_WIDTHS:
            size, hits = [], {used: [] for used in USED}
            for _ in range(repeats):
                i = int(rng.integers(world.member.shape[1]))
                pi, drawn = sampled(world, i, half_width, rng)
                size.append(int(drawn.sum()))
                for used in USED:
                    run = made_from(world, i, drawn, used, how, rng)
                    p = tested(world, world.member[:, i], run, pi, drawn)
                    hits[used].append(EARLIER * p <= ALPHA)
            table.append(
                [how, half_width, float(np.mean(size)), *(float(np.mean(hits[u])) for u in USED)]
            )
    return table


def after_a_second_run(world: World, repeats: int, rng: np.random.Generator) -> list[list[object]]:
    """Return how often runs are flagged against a second run of the team that was read from."""
    found: dict[str, list[tuple[float, float]]] = {"honest": [], "leak of what it asked": []}
    for _ in range(repeats):
        i, k = (int(one) for one in rng.choice(world.member.shape[1], 2, replace=False))
        half_width, u = float(rng.choice(HALF_WIDTHS)), rng.random(world.n_targets)
        first = thresholds(world, world.member[:, i] > 0, half_width)
        second = made_from(world, i, u < first, 1.0, "leak", rng) | (world.member[:, k] > 0)
        second &= ~((u < first)[world.target] & (world.true == 0))
        known = np.bincount(world.target[world.member[:, i] > 0], minlength=u.size) > 0
        now = np.maximum(first, thresholds(world, second, half_width))
        before = np.where(known, first, 0.0)
        chance = (now - before) / np.where(before < 1, 1 - before, 1.0)

        def p_values(
            run: np.ndarray, believed: np.ndarray, u=u, before=before, chance=chance, now=now,
            second=second,
        ) -> tuple[float, float]:  # fmt: skip
            return (
                tested(world, second, run, believed, u < believed),
                tested(world, second, run, chance, u < now, before <= u),
            )

        others = np.where(known, first, now)  # what it asked of what its team knew is no sample
        for _, run in honest_runs(world, k, rng):
            found["honest"].append(p_values(run, others))
        asked = ((before <= u) & (u < now))[world.target]
        leak = second & ~(asked & (world.true == 0))
        found["leak of what it asked"].append(p_values(leak, others))
    return [
        [name, way, len(some), *(float(np.mean(p <= level)) for level in (0.1, 0.01, ALPHA)),
         float(np.mean(EARLIER * p <= ALPHA))]
        for name, some in found.items()
        for way, p in zip(("all that it predicts", "what was to come"), np.transpose(some), strict=True)
    ]  # fmt: skip


def through_documents(
    world: World, document: np.ndarray, repeats: int, rng: np.random.Generator
) -> list[list[object]]:
    """Return how often a run is flagged that uses documents read whole, or no answer at all."""
    table: list[list[object]] = []
    of_target = np.zeros(world.n_targets, dtype=np.int64)
    of_target[world.target] = document
    for how in ("leak", "sabotage", "adds"):
        for size in (20, 100):
            hits, honest = {used: [] for used in USED}, []
            for _ in range(repeats):
                i = int(rng.integers(world.member.shape[1]))
                read = np.isin(of_target, rng.choice(N_DOCUMENTS, size, replace=False))
                for used in USED:
                    run = made_from(world, i, read, used, how, rng)
                    p = tested_by_documents(world, i, run, of_target, read)
                    hits[used].append(EARLIER * p <= ALPHA)
                honest += [
                    tested_by_documents(world, i, run, of_target, read)
                    for _, run in honest_runs(world, i, rng)
                ]
            low = [len(honest), float(np.mean(np.array(honest) <= ALPHA))]
            table.append([how, size, *(float(np.mean(hits[u])) for u in USED), *low])
    return table


def tested_by_documents(
    world: World, i: int, run: np.ndarray, of_target: np.ndarray, read: np.ndarray
) -> float:
    """Return the p-value of a run against the documents in which run i predicts something."""
    states, base = world.member[:, i] > 0, nearest(world, run)
    count, both, near = (
        np.bincount(world.target[some], minlength=of_target.size)
        for some in (states, states & run, states & base)
    )
    inside = count > 0
    return leaks.document_test(
        of_target[inside], read[inside], (both == count)[inside], stratum=near[inside] > 0
    ).p_value


def with_run(world: World, run: np.ndarray) -> World:
    """Return the board with one more run, of a team of its own."""
    p = run / max(run.sum(), 1)
    return replace(
        world,
        P=np.column_stack([world.P, p]),
        member=np.column_stack([world.member, run.astype(world.member.dtype)]),
        confidence=np.column_stack([world.confidence, run.astype(float)]),
        team=np.append(world.team, world.team.max() + 1),
    )


def goal_of(half_width: float) -> float:
    return (half_width / Z) ** 2


def error(board: Board, i: int) -> tuple[float, bool]:
    """Return how far the printed precision of a run is off, and whether its interval holds."""
    world = board.world
    found, _ = measure(board, Run.of(world, i, 0.0), True)
    low, high = found.confidence_interval(LEVEL, method="wilson")
    truth = float(world.P[:, i] @ world.true)
    return float(found.value) - truth, bool(low <= truth <= high)


def treated(board: Board, i: int, half_width: float) -> tuple[float, bool]:
    """Return the same of a run that is scored as one that saw all that was judged of it."""
    world, before = board.world, board.pi.copy()
    own = np.flatnonzero(world.member[:, i])
    names = world.target[own]
    p, exact = world.P[own, i], board.asked[names]
    rest = np.flatnonzero(~exact)
    code = np.unique(names[rest], return_inverse=True)[1]
    g = board.fitted.g[np.searchsorted(board.rows, own)]
    chance = np.ones(own.size)
    chance[rest] = poisson.water_fill(
        p[rest], np.zeros(rest.size),
        model.expected_error(p[rest], g[rest], code, correlation=board.rho),
        target_variance=goal_of(half_width), target=code,
    )  # fmt: skip
    own_pi = before.copy()
    own_pi[names[rest]] = seen.threshold(chance[rest], before[names[rest]])
    known = exact | (board.u[names] < own_pi[names])
    target = np.unique(names[known], return_inverse=True)[1]
    found = horvitz_thompson.centred(
        p[known], chance[known], world.true[own][known], g[known], float(p @ g),
        target=target, certainty=exact[known],
    )  # fmt: skip
    fresh = known & ~exact
    if fresh.any():
        expected = horvitz_thompson.anticipated_variance(
            p[rest], np.maximum(chance[rest], 1e-12), g[rest], world.true[own][fresh], g[fresh],
            target=code, correlation=board.rho,
        )  # fmt: skip
        found = replace(found, anticipated=expected)
    low, high = found.confidence_interval(LEVEL, method="wilson")
    truth = float(p @ world.true[own])
    return float(found.value) - truth, bool(low <= truth <= high)


def board_of_three(
    world: World, how: str, half_width: float, rng: np.random.Generator
) -> dict[str, list[tuple[float, bool]]]:
    """Return the errors of (read from, uninvolved, new) with the new one believed and treated."""
    i, other = (int(one) for one in rng.choice(world.member.shape[1], 2, replace=False))
    n = world.n_targets
    board = Board(world, rng.random(n), rng.integers(0, FOLDS, n), np.zeros(n), [])
    for one in (i, other):
        arrive(board, [one], True, goal_of(half_width), UNTIL)
    run = made_from(world, i, board.asked, 1.0, how, rng)
    full = with_run(world, run)
    new = full.member.shape[1] - 1
    fair = Board(full, board.u, board.fold, board.pi.copy(), [])
    for one in (i, other):
        fair.welcome(one)
    fair.learn()
    found = {"treated": [error(fair, i), error(fair, other), treated(fair, new, half_width)]}
    fooled = Board(full, board.u, board.fold, board.pi.copy(), [])
    for one in (i, other):
        fooled.welcome(one)
    arrive(fooled, [new], True, goal_of(half_width), UNTIL)
    return found | {"believed": [error(fooled, one) for one in (i, other, new)]}


def errors(world: World, repeats: int, rng: np.random.Generator) -> list[list[object]]:
    """Return mean error, mean absolute error and coverage of everybody."""
    table: list[list[object]] = []
    for how in ("leak", "sabotage"):
        played = [board_of_three(world, how, 0.05, rng) for _ in range(repeats)]
        for way in ("believed", "treated"):
            of = np.array([one[way] for one in played])
            for at, who in enumerate(("read from", "uninvolved", "new")):
                off, held = 100 * of[:, at, 0], of[:, at, 1]
                table.append(
                    [how, way, who, off.mean(), np.abs(off).mean(), np.abs(off).max(), held.mean()]
                )
    return table


def main(repeats: int) -> None:
    """Print the tables and write them as CSV."""
    if not redocred.available():
        return
    started, rng, world = time.perf_counter(), np.random.default_rng(12), worlds()["instance"]
    print(f"Honest runs against {20 * repeats} samples")
    tables.show(
        "leaked_answers_honest",
        ["made of", "pairs", "p ≤ 0.1", "p ≤ 0.01", "p ≤ 0.001", "least p"],
        false_alarms(world, 20 * repeats, rng),
    )
    print(
        "\nFlagged, by half-width of the sample that was read and share of its answers that is used"
    )
    tables.show(
        "leaked_answers_power",
        ["made by", "half-width", "judged", *(f"{used:.0%} used" for used in USED)],
        power(world, 4 * repeats, rng),
    )
    print("\nAgainst a second run, by what of it is tested; flagged: p ≤ 0.001 with Holm over 27")
    tables.show(
        "leaked_answers_second_run",
        ["run", "tested against", "pairs", "p ≤ 0.1", "p ≤ 0.01", "p ≤ 0.001", "flagged"],
        after_a_second_run(world, 4 * repeats, rng),
    )
    print("\nFlagged, by documents read whole, and share of honest runs with p ≤ 0.001")
    pool = redocred.read(redocred.names())
    assert pool.n_documents == N_DOCUMENTS
    tables.show(
        "leaked_answers_documents",
        ["made by", "documents", *(f"{used:.0%} used" for used in USED), "honest", "p ≤ 0.001"],
        through_documents(world, pool.document[: pool.n_predicted], 4 * repeats, rng),
    )
    print("\nErrors in points, ±5 at 80 %, instance")
    tables.show(
        "leaked_answers_errors",
        ["made by", "new run is", "whose", "mean", "mean |error|", "worst", "80 % holds"],
        errors(world, repeats, rng),
    )
    print(f"{repeats} repeats, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 12)
