"""On-the-job labelling against the published experiments: Tables A to C, Figures A to C.

A stream of inputs is labelled by each policy with the same frozen people: n-vote, a model trained
on gold that never asks (online), the threshold rule, lookahead and the tree search (LENSE). Prints
the tables with the published ones beside them, and draws the figures into `benchmarks/out/`.

    python benchmarks/on_the_job.py [seeds] [--only NAME]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass, field
from html import escape
from multiprocessing import Pool
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # many small matrices in two processes

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import on_the_job_data as data
from estimators.onthejob.delays import ShiftedLogNormal, delay_model
from estimators.onthejob.learner import Learner
from estimators.onthejob.people import Quality, symmetric_response_table
from estimators.onthejob.policies import (
    Lookahead,
    Online,
    Rounds,
    Threshold,
    Vote,
    majority_responses,
)
from estimators.onthejob.search import Search
from estimators.onthejob.states import RETURN, WAIT, Belief, Costs, State


@dataclass(frozen=True)
class Setting:
    """How one data set is played.

    Prices, prior of the delays, inputs with answers from one epoch of the model to the next,
    whether people are right equally often for all labels, and simulations of a search.
    """

    costs: Costs
    prior: ShiftedLogNormal
    every: int
    tied: bool
    simulations: int


def delay_prior(median: float, p90: float) -> ShiftedLogNormal:
    return ShiftedLogNormal.from_quantiles(median, p90)


SENTIMENT = Setting(Costs(0.015, 0.0005), delay_prior(5.0, 15.0), 1, True, 40)
TWEETS = ("tweets, PER", "tweets, LOC", "tweets, ORG")
SETTINGS = {
    "sentiment, unigrams": SENTIMENT,
    "sentiment, lexicon": SENTIMENT,
    "digits": Setting(Costs(0.01, 0.0025), delay_prior(2.0, 4.0), 1, True, 30),
    "wikigold": Setting(Costs(0.015, 0.003, True), delay_prior(1.0, 2.0), 2, False, 12),
    **dict.fromkeys(
        TWEETS, Setting(Costs(0.01, 0.0015, True), delay_prior(2.0, 6.0), 4, False, 12)
    ),
}
INPUTS = 250  # of each stream; the time that all takes grows in proportion
LEARNING_RATE = 0.1  # a first step moves a score by this times √(features of a token)
METHODS = ("1-vote", "3-vote", "5-vote", "online", "threshold", "lookahead", "LENSE", "LENSE q=.7")


def load_stream(name: str, seed: int) -> data.Stream:
    if name.startswith("sentiment"):
        return data.load_sentiment(seed, name.endswith("lexicon"))
    if name.startswith("tweets"):
        return data.load_tweets(seed, name[-3:])
    return data.load_digits(seed) if name == "digits" else data.load_wikigold(seed)


@dataclass
class Played:
    """The results of one policy on one stream: lists with an entry for each input."""

    tokens: list[int] = field(default_factory=list)
    right: list[float] = field(default_factory=list)
    queries: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    found: list[np.ndarray] = field(default_factory=list)  # true and false positives, misses
    expected: list[float] = field(default_factory=list)  # right labels that the model expected
    calibration: np.ndarray = field(default_factory=lambda: np.zeros((10, 3)))
    trace: list[dict] = field(default_factory=list)
    names: tuple[str, ...] = ()
    marked: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))


def play_policy(job: tuple[str, int, str]) -> tuple[tuple[str, int, str], Played]:
    """Label a stream by one policy, learning from the answers."""
    name, seed, method = job
    stream, setting = load_stream(name, seed), SETTINGS[name]
    rng = np.random.default_rng([seed, 1])
    n_labels = len(stream.labels)
    learner = Learner(stream.n_features, n_labels, rate=LEARNING_RATE, every=setting.every)
    fixed = method == "LENSE q=.7"
    quality = Quality(n_labels, tied=setting.tied)
    votes = int(method[0]) if method.endswith("-vote") else 0
    delays, recorded = setting.prior, []
    played = Played(names=stream.labels, marked=stream.marked[:INPUTS])
    for t in range(len(played.marked)):
        features, gold = stream.features[t], stream.gold[t]
        n = len(gold)
        if t % 50 == 0:
            delays = delay_model(recorded[-1000:], setting.prior)
        if votes:
            unary, transition = np.zeros((n, n_labels)), np.zeros((n_labels, n_labels))
        else:
            unary, transition = learner.scores(features)
        table = symmetric_response_table(n_labels, 0.7) if fixed or votes else quality.table()
        belief = Belief(unary, transition, [table])
        policy: Rounds | Search
        if votes:
            policy = Vote(votes)
        elif method == "online":
            policy = Online()
        elif method == "threshold":
            policy = Threshold()
        elif method == "lookahead":
            policy = Lookahead(setting.costs, delays, at_once=5 if n == 1 else 1)
        else:
            policy = Search(setting.costs, delays, rng, simulations=setting.simulations)
        tables: dict[int, int] = {}
        state = State(belief, most=stream.responses[t].shape[1])
        flying: list[tuple[float, int]] = []  # arrival and person of each query in flight
        answers: list[tuple[int, int, int]] = []  # worker, position, response
        events: list[dict] = []
        while (action := policy.next(state)) != RETURN:
            if action == WAIT:
                first = flying.index(min(flying))
                position = state.in_flight[first][0]
                arrival, person = flying.pop(first)
                response = int(stream.responses[t][position, person])
                worker = int(stream.workers[t][position, person])
                if worker >= 0 and worker not in tables and not (fixed or votes):
                    tables[worker] = belief.add_table(quality.table(worker))
                recorded.append(arrival - state.in_flight[first][1])
                state = state.answer(first, response, arrival, tables.get(worker, 0))
                answers.append((worker, position, response))
            else:
                person = state.asked(action)
                flying.append((state.now + stream.delays[t][action, person], person))
                state = state.ask(action)
                position, response = action, -1
            if (seed, method, name) == (0, "LENSE", "wikigold"):
                tree = (
                    policy.top_of_search_tree()
                    if isinstance(policy, Search) and not events
                    else None
                )
                events.append(
                    {
                        "now": state.now,
                        "position": position,
                        "response": response,
                        "nodes": state.posterior.nodes,
                        "tree": tree,
                    }
                )
        nodes = state.posterior.nodes
        labels = majority_responses(state.answered, n, n_labels) if votes else state.labels()
        if method == "online":
            learner.learn(features, np.where(gold[:, None] == np.arange(n_labels), 0.0, -30.0))
        elif not votes:
            learner.learn(features, belief.log_likelihood(state.answered))
            for worker, position, response in answers:
                quality.update(worker, response, nodes[position])
        played.tokens.append(n)
        played.right.append(float((labels == gold).sum()))
        played.queries.append(state.n_queries)
        played.seconds.append(state.now)
        played.expected.append(state.posterior.best)
        played.found.append(
            np.array(
                [
                    [
                        ((labels == k) & (gold == k)).sum(),
                        ((labels == k) & (gold != k)).sum(),
                        ((labels != k) & (gold == k)).sum(),
                    ]
                    for k in range(n_labels)
                ]
            )
        )
        surest = nodes.max(axis=1)
        bins = np.minimum((surest * 10).astype(int), 9)
        np.add.at(played.calibration, bins, np.stack([surest * 0 + 1, surest, labels == gold], 1))
        if events:
            text = stream.texts[t]
            played.trace.append(
                {"t": t, "tokens": text, "first": belief.posterior().nodes, "events": events}
            )
    return job, played


def summarise_policy(runs: list[list[Played]], costs: Costs, marked: bool) -> dict[str, np.ndarray]:
    """Return the figures of one policy, one number for each seed.

    `runs` has a list of streams for each seed: one, or one for each kind of name.
    """
    rows = []
    for streams in runs:
        kept = [one.marked if marked else np.ones(len(one.tokens), dtype=bool) for one in streams]
        column = {
            name: np.concatenate(
                [
                    np.array(getattr(one, name))[part]
                    for one, part in zip(streams, kept, strict=True)
                ]
            )
            for name in ("tokens", "right", "queries", "seconds")
        }
        tokens = column["tokens"]
        when = np.concatenate(
            [np.linspace(0, 1, len(part))[part] for part in kept]
        )  # how much of the stream came before
        first, last = when < 1 / 3, when > 2 / 3
        calibration = sum(one.calibration for one in streams)
        row = {
            "seconds": column["seconds"].sum() / tokens.sum(),
            "queries": column["queries"].sum() / tokens.sum(),
            "first third": column["queries"][first].sum() / tokens[first].sum(),
            "last third": column["queries"][last].sum() / tokens[last].sum(),
            "accuracy": column["right"].sum() / tokens.sum(),
            "calibration error": np.abs(calibration[:, 1] - calibration[:, 2]).sum()
            / calibration[:, 0].sum(),
        }
        row["utility"] = (
            row["accuracy"] - costs.query * row["queries"] - costs.time * row["seconds"]
        )
        if "NONE" in streams[0].names:
            # Hits, false alarms and misses of each label, then of each kind of name.
            counts = [
                np.array(one.found)[part].sum(axis=0)
                for one, part in zip(streams, kept, strict=True)
            ]
            kinds = np.stack([c[1] for c in counts]) if len(streams) > 1 else counts[0][:3]
            kinds = np.vstack([kinds, kinds.sum(axis=0)])
            f1 = 2 * kinds[:, 0] / (2 * kinds[:, 0] + kinds[:, 1] + kinds[:, 2])
            row |= dict(zip(("PER", "LOC", "ORG", "F1"), f1, strict=True))
        rows.append(row)
    return {key: np.array([row[key] for row in rows]) for key in rows[0]}


def paired_difference(
    a: list[list[Played]], b: list[list[Played]], costs: Costs
) -> tuple[float, float]:
    """Return the mean difference of utility per token, and its standard error over inputs."""

    def utilities(runs: list[list[Played]]) -> np.ndarray:
        return np.concatenate(
            [
                np.array(one.right)
                - costs.query * np.array(one.queries)
                - costs.time * np.array(one.seconds)
                for streams in runs
                for one in streams
            ]
        )

    tokens = np.concatenate([one.tokens for streams in a for one in streams])
    difference = (utilities(a) - utilities(b)) / tokens.mean()
    return float(difference.mean()), float(difference.std() / np.sqrt(len(difference)))


PUBLISHED = {
    "wikigold": {  # ms a token, queries a token, F1 of PER, LOC, ORG, all (CoNLL-2003)
        "1-vote": "467 ms, 1, 90.2, 78.8, 71.5, 80.2",
        "3-vote": "750 ms, 3, 93.6, 85.1, 74.5, 85.4",
        "5-vote": "1350 ms, 5, 95.5, 87.7, 78.7, 87.3",
        "online": "–, –, 56.9, 74.6, 51.4, 60.9",
        "threshold": "414 ms, 0.61, 95.2, 89.8, 79.8, 88.3",
        "LENSE": "267 ms, 0.45, 95.2, 89.7, 81.7, 88.8",
    },
    "digits": {  # seconds, queries, accuracy (faces)
        "1-vote": "1.22, 1, 93.6",
        "3-vote": "1.78, 3, 99.1",
        "5-vote": "2.10, 5, 99.8",
        "online": "–, –, 79.9",
        "threshold": "1.68, 2.66, 93.5",
        "LENSE": "1.59, 2.37, 99.2",
    },
    "sentiment, unigrams": {  # seconds, queries, accuracy (IMDB)
        "1-vote": "6.6, 1, 89.2",
        "3-vote": "10.9, 3, 95.8",
        "5-vote": "13.5, 5, 98.7",
        "online": "–, –, 78.1",
        "threshold": "10.9, 2.99, 95.9",
        "LENSE": "11.7, 3.48, 98.6",
    },
    "sentiment, lexicon": {
        "1-vote": "6.6, 1, 89.2",
        "3-vote": "10.9, 3, 95.8",
        "5-vote": "13.5, 5, 98.7",
        "online": "–, –, 85.0",
        "threshold": "11.0, 2.85, 96.0",
        "LENSE": "11.0, 3.19, 98.6",
    },
}
TABLES = {
    "A, names on Wikipedia (simulated people)": ("wikigold",),
    "A, names on tweets (real people, all sections)": TWEETS,
    "A, names on tweets (real people, section e)": TWEETS,
    "B, digits 0 to 3 (simulated people)": ("digits",),
    "C, sentiment, unigrams (real people)": ("sentiment, unigrams",),
    "C, sentiment, unigrams and lexicon (real people)": ("sentiment, lexicon",),
}


def print_table(title: str, results: dict, n_seeds: int) -> None:
    """Print the figures of all policies, each as mean and standard error over seeds, and
    differences of utility.
    """
    names = TABLES[title]
    if (names[0], 0, "LENSE") not in results:
        return
    costs = SETTINGS[names[0]].costs
    runs = {
        method: [[results[name, seed, method] for name in names] for seed in range(n_seeds)]
        for method in METHODS
        if (names[0], 0, method) in results
    }
    rows = {
        m: summarise_policy(one, costs, title.endswith("section e)")) for m, one in runs.items()
    }
    kinds = ["PER", "LOC", "ORG", "F1"] if "F1" in rows["LENSE"] else []
    columns = ["seconds", "queries", "first third", "last third", *kinds, "accuracy"]
    columns += ["utility", "calibration error"]
    percent = {*kinds, "accuracy", "utility"}
    print(f"\n### Table {title}\n")
    print("| | " + " | ".join(columns) + " | published |")
    print("|---|" + "--:|" * len(columns) + "---|")
    for method, row in rows.items():
        cells = []
        for column in columns:
            scale = 100 if column in percent else 1
            mean, spread = row[column].mean() * scale, row[column].std(ddof=1) * scale
            digits = 1 if column in percent else 3
            cells.append(f"{mean:.{digits}f} ± {spread / np.sqrt(n_seeds):.{digits}f}")
        published = PUBLISHED.get(names[0], {}).get(method, "")
        print(f"| {method} | " + " | ".join(cells) + f" | {published} |")
    print()
    if title.endswith("section e)"):
        return  # utilities are paired over all sections
    for other in ("threshold", "lookahead"):
        mean, error = paired_difference(runs["LENSE"], runs[other], costs)
        low = mean - 1.645 * error
        print(f"LENSE − {other}: utility {mean:+.4f} ± {error:.4f}, at least {low:+.4f} (95 %)\n")


def moving_averages(values: list[np.ndarray], tokens: np.ndarray, width: int) -> np.ndarray:
    """Return sums of values over sums of tokens in windows of inputs."""
    kernel = np.ones(width)
    above = sum(np.convolve(one, kernel, "valid") for one in values)
    return above / np.convolve(tokens, kernel, "valid")


def draw_charts(path: Path, panels: list[tuple[str, dict[str, np.ndarray]]]) -> None:
    """Draw panels of lines over the number of inputs seen as SVG."""
    colours = ("#0b5fa5", "#c2410c", "#3f7d20", "#6b7280")
    parts = []
    for k, (title, lines) in enumerate(panels):
        left, top, width, height = 50 + 350 * k, 30, 270, 170
        high = max(float(line.max()) for line in lines.values()) * 1.05
        parts.append(f'<text x="{left}" y="18" font-weight="bold">{title}</text>')
        for share in (0, 0.5, 1):
            y = top + height * (1 - share)
            parts.append(f'<path d="M{left} {y}h{width}" stroke="#ddd"/>')
            parts.append(
                f'<text x="{left - 5}" y="{y + 4}" text-anchor="end">{high * share:.2f}</text>'
            )
        for j, (name, line) in enumerate(lines.items()):
            x = left + width * np.linspace(0, 1, len(line))
            y = top + height * (1 - line / high)
            points = " ".join(f"{a:.0f},{b:.1f}" for a, b in list(zip(x, y, strict=True))[::4])
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colours[j]}"/>')
            place = f'x="{left + 90 * j}" y="{top + height + 34}"'
            parts.append(f'<text {place} fill="{colours[j]}">{name}</text>')
        parts.append(f'<text x="{left + 100}" y="{top + height + 16}">inputs seen</text>')
    write_svg(path, 350 * len(panels) + 20, 245, parts)


def write_svg(path: Path, width: int, height: int, parts: list[str]) -> None:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
    head += f'width="{width}" font-family="sans-serif" font-size="11">'
    path.write_text(head + "".join(parts) + "</svg>\n")
    print(f"wrote {path}")


def draw_trace(path: Path, trace: dict, labels: tuple[str, ...]) -> None:
    """Draw one input: marginals of its tokens after each answer, and the first search."""
    colours = ("#0b5fa5", "#3f7d20", "#c2410c", "#e5e7eb")
    tokens, parts = trace["tokens"], []
    moments: list[tuple[str, np.ndarray]] = [("0.0 s", trace["first"])]
    asked: list[list[int]] = [[]]
    for event in trace["events"]:
        if event["response"] < 0:
            asked[-1].append(event["position"])
        else:
            label = labels[event["response"]]
            text = f"{event['now']:.1f} s: {tokens[event['position']]} = {label}"
            moments.append((text, event["nodes"]))
            asked.append([])
    for i, token in enumerate(tokens):
        x = 250 + 24 * i
        parts.append(f'<text transform="translate({x + 8} 88) rotate(-60)">{escape(token)}</text>')
    for k, (text, nodes) in enumerate(moments):
        y = 96 + 34 * k
        parts.append(f'<text x="4" y="{y + 16}">{escape(text)}</text>')
        for i, p in enumerate(nodes):
            bottom = y + 26.0
            for label, share in enumerate(p):
                bottom -= 26 * share
                parts.append(
                    f'<rect x="{250 + 24 * i}" y="{bottom:.1f}" width="18"'
                    f' height="{26 * share:.1f}" fill="{colours[label]}"/>'
                )
            if i in asked[k]:
                parts.append(
                    f'<rect x="{248 + 24 * i}" y="{y - 2}" width="22" height="30" fill="none"'
                    ' stroke="black"/>'
                )
    y = 96 + 34 * len(moments) + 14
    parts.append(f'<text x="4" y="{y}">colours:</text>')
    for k, label in enumerate(labels):
        parts.append(f'<rect x="{70 + 70 * k}" y="{y - 10}" width="12" height="12" ')
        parts.append(f'fill="{colours[k]}"/><text x="{86 + 70 * k}" y="{y}">{label}</text>')
    parts.append(f'<text x="370" y="{y}">framed: asked</text>')
    tree = next(event["tree"] for event in trace["events"] if event["tree"])
    y += 26
    parts.append(f'<text x="4" y="{y}" font-weight="bold">first search: visits, value</text>')

    def name(action: int) -> str:
        return "wait" if action == WAIT else f"ask {escape(tokens[action])}"

    for action, visits, value, below in sorted(tree, key=lambda row: -row[2]):
        y += 17
        parts.append(f'<text x="4" y="{y}">{name(action)}: {visits}, {value:.3f}</text>')
        after = "; ".join(f"{name(a)}: {n}, {v:.3f}" for a, n, v in below[:4] if n)
        parts.append(f'<text x="250" y="{y}" fill="#555">{after}</text>')
    write_svg(path, max(260 + 24 * len(tokens), 760), y + 12, parts)


def draw_figures(results: dict, folder: Path) -> None:
    """Draw the three figures of the study (A to C) from seed 0."""
    folder.mkdir(exist_ok=True)
    f1, queries = {}, {}
    for method in ("LENSE", "online", "1-vote"):
        one = results.get(("wikigold", 0, method))
        if one is None:
            break
        counts, tokens = np.array(one.found)[:, :3].sum(axis=1), np.array(one.tokens)
        hit, false, missed = (counts[:, k].astype(float) for k in range(3))
        f1[method] = moving_averages([2 * hit], 2 * hit + false + missed, 60)
        queries[method] = moving_averages([np.array(one.queries)], tokens, 60)
    else:
        draw_charts(folder / "on_the_job_a.svg", [("F1", f1), ("queries a token", queries)])
        traces = results["wikigold", 0, "LENSE"].trace
        shown = [t for t in traces if len(t["tokens"]) <= 20 and 6 <= len(t["events"]) <= 14]
        if shown:  # the input with most answers that are names
            named = [sum(0 <= event["response"] < 3 for event in t["events"]) for t in shown]
            trace = shown[named.index(max(named))]
            draw_trace(folder / "on_the_job_c.svg", trace, results["wikigold", 0, "LENSE"].names)
    lines = {}
    for name in ("sentiment, unigrams", "sentiment, lexicon"):
        one = results.get((name, 0, "LENSE"))
        if one is not None:
            lines[name.split(", ")[1]] = moving_averages(
                [np.array(one.queries)], np.array(one.tokens), 150
            )
    if lines:
        draw_charts(folder / "on_the_job_b.svg", [("queries an example, LENSE", lines)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="?", type=int, default=5)
    parser.add_argument("--only", default="", help="data sets whose name contains this")
    arguments = parser.parse_args()
    begin = time.time()
    there = []
    for name in SETTINGS:
        if arguments.only in name:
            try:
                load_stream(name, 0)
                there.append(name)
            except data.Missing as error:
                print(f"skips {name}: {error}")
    jobs = [
        (name, seed, method)
        for name in there
        for method in METHODS
        if method != "LENSE q=.7" or name in ("digits", "sentiment, lexicon")
        for seed in range(arguments.seeds)
    ]
    jobs.sort(key=lambda job: job[0] != "wikigold")  # the longest first
    with Pool(2) as pool:
        results = dict(pool.imap_unordered(play_policy, jobs))
    for title in TABLES:
        print_table(title, results, arguments.seeds)
    draw_figures(results, data.CACHE)
    print(f"\n{arguments.seeds} seeds, {time.time() - begin:.0f} s")


if __name__ == "__main__":
    main()
