"""Studies what scores on a track would have been under pooling, with and without each system's team
in the pool.

Over what people have judged: of a sample the rest is not wrong but unknown, so it is left out,
where pooling would count it as wrong. What people found when they read documents in full is the
human team's, which is always in the pool, whether a system was asked about it or not. Chaganty
2018, section 3.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from estimators.pooling import METRICS, PoolingBias, Scores, largest_gap, pooling_bias
from kbpo.corpus.fetch import fetch
from kbpo.evaluation.data import read
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from scoring.arrays import Bools, Floats, Ids
from scoring.data import Data

QUANTITIES = ("precision", "recall", "f1")


@dataclass(frozen=True)
class Study:
    """The pooling bias of a track's systems under both metrics."""

    systems: list[Submission]
    bias: dict[str, PoolingBias]
    """metric -> true minus unpooled, in the order of `systems`"""
    n_instances: int
    """Judged instances"""
    n_human: int
    """True ones that people found by reading documents in full, drawn or not, predicted by a system
    or not"""
    n_teams: int

    def summary(self) -> list[dict[str, object]]:
        """Median bias and largest gap between neighbours in rank, for each metric and quantity."""
        return [
            {
                "metric": metric,
                "quantity": quantity,
                "median": _median(getattr(bias, quantity)),
                "largest": _largest(getattr(bias, quantity)),
                "gap": largest_gap(getattr(bias.true, quantity)),
            }
            for metric, bias in self.bias.items()
            for quantity in QUANTITIES
        ]

    def ranked(self, metric: str, quantity: str) -> list[tuple[Submission, float, float]]:
        """(system, true score, bias) from best to worst; systems without a score are left out."""
        bias = self.bias[metric]
        true, lost = getattr(bias.true, quantity), getattr(bias, quantity)
        order = [
            column
            for column in np.argsort(-np.nan_to_num(true), kind="stable").tolist()
            if not np.isnan(true[column])
        ]
        return [
            (self.systems[column], float(true[column]), float(lost[column])) for column in order
        ]

    def rows(self) -> list[list[object]]:
        """Everything, a line each: metric, quantity, rank, team, run, true, unpooled, bias."""
        return [
            [metric, quantity, rank, system.team.name, system.name, true, true - lost, lost]
            for metric in self.bias
            for quantity in QUANTITIES
            for rank, (system, true, lost) in enumerate(self.ranked(metric, quantity), 1)
        ]

    def told(self) -> dict[str, Any]:
        """The same as it is stored: JSON has no NaN, and None stands for it."""
        return {
            "systems": len(self.systems),
            "teams": self.n_teams,
            "instances": self.n_instances,
            "human": self.n_human,
            "summary": [
                {name: _plain(value) for name, value in row.items()} for row in self.summary()
            ],
            "rows": [[_plain(cell) for cell in row] for row in self.rows()],
        }


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


HEAD = ["metric", "quantity", "rank", "team", "run", "true", "unpooled", "bias"]


def study(track: Track) -> Study | None:
    """The study of a track as it is now; None before two teams have judged predictions on it."""
    data = read(track)
    if not data.judged.size or data.facts is None:
        return None
    columns = np.flatnonzero(data.shown)
    label = data.f[data.base][:, 0]
    labelled = np.flatnonzero(
        ~np.isnan(label) & (data.pool.member[data.judged][:, columns].sum(axis=1) > 0)
    )
    teams = np.array(data.pool.teams, dtype=np.int64)[columns]
    if not labelled.size or np.unique(teams).size < 2:
        return None
    human = data.facts.marked[data.judged[labelled]] & (
        label[labelled] == 1
    )  # at these mentions or at others of the same fact
    pool = _with_marked(data, labelled, columns, label[labelled], human)
    systems = Submission.objects.select_related("team").in_bulk(
        [data.systems[column] for column in columns]
    )
    return Study(
        systems=[systems[data.systems[column]] for column in columns],
        bias={metric: pool.bias(teams, metric) for metric in METRICS},
        n_instances=int(labelled.size),
        n_human=int(pool.human.sum()),
        n_teams=int(np.unique(teams).size),
    )


@dataclass(frozen=True)
class _Pool:
    """Judged rows, then facts that people marked beside them: what pooling is studied over, (n,)
    each.
    """

    member: Bools
    """(n, m) whether a system predicts the row, or of a marked fact any of its mentions"""
    drawn: Bools
    """It was judged whatever it said; the rest is known only because it is true"""
    label: Floats
    relation: Ids
    human: Bools

    def bias(self, teams: Ids, metric: str) -> PoolingBias:
        """The bias of every system. What is known only because it is true would raise its
        precision: of that only the finding counts, as recall.
        """

        def of(member: Bools) -> PoolingBias:
            return pooling_bias(
                member, self.label, self.relation, teams, human=self.human, metric=metric
            )

        precision, recall = of(self.member & self.drawn[:, None]), of(self.member)
        return PoolingBias(
            _joined(precision.true, recall.true), _joined(precision.unpooled, recall.unpooled)
        )


def _joined(precise: Scores, complete: Scores) -> Scores:
    """The precision of one, the recall of the other."""
    both = precise.precision + complete.recall
    f1 = np.divide(
        2 * precise.precision * complete.recall,
        both,
        out=np.where(np.isnan(both), np.nan, 0.0),
        where=both > 0,
    )
    return Scores(precise.precision, complete.recall, f1)


Key: TypeAlias = tuple[object, ...]
"""A relation by name, in whatever document: its predicate, and the names of its ends in lower
case"""


def _relations(data: Data, row: Ids, marked: Ids, predicted: Ids) -> tuple[Ids, Ids]:
    """Codes of the relations, in whatever document, that rows of the pool predict, and of facts
    that people marked; `predicted` is a row that predicts each of these, -1 if none does.

    They are one relation if they are of one fact, or of one predicate and the same names. A name of
    what is predicted is the link that the first submission that predicts it claims, else the text
    of its canonical mention; of what people found it is what they linked it to, if they linked both
    ends: without that, and if nobody predicts it, it is a relation of its own.
    """
    facts = data.facts
    assert facts is not None
    everything = np.concatenate([row, predicted])
    n, n_facts = everything.size, int(facts.fact.max(initial=-1)) + 1
    codes: dict[Key, int] = {}
    linkable = np.flatnonzero(everything >= 0)
    names = _names(data, everything[linkable])
    by_name = [
        codes.setdefault(names[instance], len(codes))
        for instance in data.pool.instance[everything[linkable]].tolist()
    ]
    linked = {
        fact: codes.setdefault(key, len(codes))
        for fact, key in enumerate(_linked(data))
        if key is not None
    }
    pairs = list(
        zip(linkable.tolist(), (n + np.array(by_name, dtype=np.int64)).tolist(), strict=True)
    )
    first_code = n + len(codes)
    pairs += zip(
        linkable.tolist(), (first_code + facts.fact[everything[linkable]]).tolist(), strict=True
    )
    place = {int(fact): row.size + number for number, fact in enumerate(marked)}
    for fact, code in linked.items():
        if fact in place:
            pairs.append((place[fact], n + code))
        elif facts.code[fact] >= 0:
            pairs.append((first_code + int(facts.code[fact]), n + code))
    size = first_code + n_facts
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    graph = sparse.coo_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(size, size))
    component = np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)
    return component[: row.size], component[row.size : n]


def _names(data: Data, row: Ids) -> dict[int, Key]:
    """Instance -> predicate and names of what rows of the pool predict."""
    names = ", ".join(
        f"lower(CASE WHEN p.{side}_link <> '' THEN p.{side}_link ELSE substring(d.text FROM"
        f" p.{side}_canonical_begin + 1 FOR p.{side}_canonical_end - p.{side}_canonical_begin) END)"
        for side in ("subject", "object")
    )
    named = fetch(
        f"SELECT DISTINCT ON (p.instance_id) p.instance_id, i.predicate_id, {names} FROM"
        " submissions_prediction p JOIN instances_instance i ON i.id = p.instance_id JOIN"
        " corpus_document d ON d.id = i.document_id WHERE p.submission_id = ANY(%s) AND"
        " p.instance_id = ANY(%s) ORDER BY p.instance_id, p.submission_id",
        [data.pool.systems, data.pool.instance[row].tolist()],
    )
    return {instance: tuple(names_of_row) for instance, *names_of_row in named}


def _linked(data: Data) -> list[Key | None]:
    """Of each true fact that people found its predicate and what they linked its ends to; None
    where not both are.
    """
    assert data.facts is not None
    facts = zip(data.facts.predicate.tolist(), data.facts.links.tolist(), strict=True)
    return [
        (predicate, *(end.lower() for end in ends)) if all(ends) else None
        for predicate, ends in facts
    ]


def _with_marked(data: Data, places: Ids, columns: Ids, label: Floats, human: Bools) -> _Pool:
    """Judged rows, then every true fact that people marked and that none of these rows is: nobody
    was asked about it, because no system predicts it, or only a withdrawn one, or it was not drawn.
    """
    facts = data.facts
    assert facts is not None
    row = data.judged[places]
    marked = np.flatnonzero(~np.isin(facts.code, facts.fact[row[human]]))
    in_scope = np.flatnonzero(facts.in_scope)[::-1]
    predicting = dict(zip(facts.fact[in_scope].tolist(), in_scope.tolist(), strict=True))
    predicted = np.array(
        [predicting.get(code, -1) for code in facts.code[marked].tolist()], dtype=np.int64
    )
    by_row, by_fact = _relations(data, row, marked, predicted)
    return _Pool(
        member=np.concatenate(
            [
                data.pool.member[row][:, columns].toarray() > 0,
                facts.predicted[predicted][:, columns] & (predicted >= 0)[:, None],
            ]
        ),
        drawn=np.repeat([True, False], [row.size, marked.size]),
        label=np.concatenate([label, np.ones(marked.size)]),
        relation=np.unique(np.concatenate([by_row, by_fact]), return_inverse=True)[1].astype(
            np.int64
        ),
        human=np.concatenate([human, np.ones(marked.size, dtype=np.bool_)]),
    )


def _median(values: Floats) -> float:
    defined = values[~np.isnan(values)]
    return float(np.median(defined)) if defined.size else float("nan")


def _largest(values: Floats) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.max()) if defined.size else float("nan")
