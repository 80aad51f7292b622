"""Studies what scores on a track would have been under pooling, with and without each system's team in the pool.

Over what people have judged: of a sample the rest is not wrong but unknown, so it is left out, where pooling would
count it as wrong. What people found when they read documents in full is the human team's, which is always in the pool.
Chaganty 2018, section 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from estimators.pooling import METRICS, PoolingBias, largest_gap, pooling_bias
from kbpo.corpus.fetch import fetch
from kbpo.evaluation.data import Bools, Data, read
from kbpo.sampling.probabilities import Floats, Ids
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

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
    """True ones that people found by reading documents in full, stated by a system or not"""
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
        order = [at for at in np.argsort(-np.nan_to_num(true), kind="stable").tolist() if not np.isnan(true[at])]
        return [(self.systems[at], float(true[at]), float(lost[at])) for at in order]

    def rows(self) -> list[list[object]]:
        """Everything, a line each: metric, quantity, rank, team, run, true, unpooled, bias."""
        return [
            [metric, quantity, rank, one.team.name, one.name, true, true - lost, lost]
            for metric in self.bias
            for quantity in QUANTITIES
            for rank, (one, true, lost) in enumerate(self.ranked(metric, quantity), 1)
        ]


HEAD = ["metric", "quantity", "rank", "team", "run", "true", "unpooled", "bias"]


def study(track: Track) -> Study | None:
    """The study of a track as it is now; None before two teams have judged predictions on it."""
    data = read(track)
    if not data.judged.size or data.facts is None:
        return None
    columns = np.flatnonzero(data.shown)
    label = data.f["relation"][:, 0]
    at = np.flatnonzero(~np.isnan(label) & (data.pool.member[data.judged][:, columns].sum(axis=1) > 0))
    teams = np.array(data.pool.teams, dtype=np.int64)[columns]
    if not at.size or np.unique(teams).size < 2:
        return None
    human = data.facts.marked[data.judged[at]] & (label[at] == 1)  # at these mentions or at others of the same fact
    missed = int((~data.facts.found).sum())
    membership, labels, relation, people = _with_missed(data, at, columns, label[at], human, missed)
    rows = Submission.objects.select_related("team").in_bulk([data.systems[column] for column in columns])
    return Study(
        systems=[rows[data.systems[column]] for column in columns],
        bias={
            metric: pooling_bias(membership, labels, relation, teams, human=people, metric=metric) for metric in METRICS
        },
        n_instances=int(at.size),
        n_human=int(people.sum()),
        n_teams=int(np.unique(teams).size),
    )


def _relations(data: Data, row: Ids) -> Ids:
    """Codes of the relations that rows of the pool state, in whatever document: rows are of one relation if they state
    one fact, or one predicate of the same names. A name is the link that the first submission that states it claims,
    else the text of its canonical mention."""
    assert data.facts is not None
    names = ", ".join(
        f"lower(CASE WHEN p.{side}_link <> '' THEN p.{side}_link ELSE substring(d.text FROM"
        f" p.{side}_canonical_begin + 1 FOR p.{side}_canonical_end - p.{side}_canonical_begin) END)"
        for side in ("subject", "object")
    )
    found = fetch(
        f"SELECT DISTINCT ON (p.instance_id) p.instance_id, i.predicate_id, {names} FROM submissions_prediction p"
        " JOIN instances_instance i ON i.id = p.instance_id JOIN corpus_document d ON d.id = i.document_id"
        " WHERE p.submission_id = ANY(%s) AND p.instance_id = ANY(%s) ORDER BY p.instance_id, p.submission_id",
        [data.pool.systems, data.pool.instance[row].tolist()],
    )
    codes: dict[tuple[object, ...], int] = {}
    named = {instance: codes.setdefault(tuple(said), len(codes)) for instance, *said in found}
    by_name = np.array([named[one] for one in data.pool.instance[row].tolist()], dtype=np.int64)
    by_fact = data.facts.fact[row]
    n = row.size + len(codes) + int(by_fact.max(initial=-1)) + 1
    ends = np.concatenate([row.size + by_name, row.size + len(codes) + by_fact])
    graph = sparse.coo_array((np.ones(ends.size), (np.tile(np.arange(row.size), 2), ends)), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1][: row.size], dtype=np.int64)


def _with_missed(
    data: Data, at: Ids, columns: Ids, label: Floats, human: Bools, missed: int
) -> tuple[Bools, Floats, Ids, Bools]:
    """Membership, labels, relations and the humans' finds of judged rows, then of the true facts that no system states:
    each of these is a relation of its own."""
    row = data.judged[at]
    member = data.pool.member[row][:, columns].toarray() > 0
    relation = _relations(data, row)
    return (
        np.concatenate([member, np.zeros((missed, columns.size), dtype=np.bool_)]),
        np.concatenate([label, np.ones(missed)]),
        np.concatenate([relation, int(relation.max(initial=0)) + 1 + np.arange(missed)]),
        np.concatenate([human, np.ones(missed, dtype=np.bool_)]),
    )


def _median(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if known.size else float("nan")


def _largest(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.max()) if known.size else float("nan")
