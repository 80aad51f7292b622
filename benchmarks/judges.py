"""How many questions a judge saves: a program that has read the text, as one more feature of g.

usage: python benchmarks/judges.py [ORDERS [PROCESSES [JUDGE …]]]        (default: 40 2, all judges)

The 28 real runs arrive in random orders and are asked about until each is known to ± 3 points at
80 %, as in `labels_needed.py` (`ours`, distribution `instance`). A simulated judge says of each
pair of names and relation whether it holds, and is right in 75, 85 or 92 % of all of them.

alone        its errors fall on any of them with the same chance
shared       its errors fall on what misleads the systems, too: on what many say and is wrong, and
             on what few say and is right, so that it knows little that the systems do not know

`saved` is the share of questions that it makes unnecessary; error and coverage as in
`labels_needed.py`: a judge may cost width, never bias. `useless` is right half of the time.
KBPO_SHARED_DATA names the folder that holds redocred/ if it is not ../shared/data.
"""

import os
import sys
import time
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes are what is parallel

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import arrivals, labels_needed, redocred, tables
from benchmarks.arrivals import World
from benchmarks.our_rule import ours

SEED, BLUR = 57, 0.5
JUDGES = {
    "none": None,
    "useless": (0.5, False),
    "alone, 75 %": (0.75, False),
    "alone, 85 %": (0.85, False),
    "alone, 92 %": (0.92, False),
    "shared, 75 %": (0.75, True),
    "shared, 85 %": (0.85, True),
    "shared, 92 %": (0.92, True),
}
WORLDS: dict[str, World] = {}
"""Read before the processes start, which share it."""


def judged(world: World, accuracy: float, shared: bool) -> World:
    """Return the world with a judge that is right this often."""
    rng = np.random.default_rng(SEED)
    doubt = rng.random(world.true.size)
    if shared:
        votes = world.member.sum(axis=1).argsort().argsort() / world.true.size
        misled = np.where(world.true > 0, 1 - votes, votes)
        doubt = (1 - BLUR) * misled + BLUR * doubt
    wrong = doubt > np.quantile(doubt, accuracy)
    said = np.where(wrong, 1 - world.true, world.true)
    return replace(world, scores=said[:, None])


def replay(job: tuple[str, int]) -> arrivals.Path:
    """Return the arrivals of one order with one judge; the orders are the same for every judge."""
    name, order = job
    return ours(WORLDS[name], np.random.default_rng([labels_needed.SEED, order]), with_g=True)


def main(orders: int, processes: int, names: list[str]) -> None:
    """Replay these judges and report; the first is what the others are held against."""
    if not redocred.available():
        return
    started = time.perf_counter()
    world = arrivals.worlds()["instance"]
    for name in names:
        judge = JUDGES[name]
        WORLDS[name] = world if judge is None else judged(world, *judge)
    rows: list[list[object]] = []
    with get_context("fork").Pool(processes) as pool:
        alone = 0.0
        for name in names:
            jobs = [(name, order) for order in range(orders)]
            found = labels_needed.summarise(pool.map(replay, jobs, chunksize=1))
            questions = found.at("targets", found.targets.shape[1])
            alone = alone or questions
            error, covered, covered_error, bias, bias_error, *_ = labels_needed.quality(found)
            saved = 1 - questions / alone
            told = [round(questions), saved, error, covered, covered_error, bias, bias_error]
            rows.append([name, *told])
            print(rows[-1], file=sys.stderr, flush=True)
    head = ["judge", "questions", "saved", "error", "coverage", "± s.e.", "bias", "± s.e."]
    tables.show("judges", head, rows)
    print(f"{time.perf_counter() - started:.0f} s with {processes} processes")


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:3]]
    main(*given, *(40, 2)[len(given) :], sys.argv[3:] or list(JUDGES))
