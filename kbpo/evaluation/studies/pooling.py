"""Studies what scores on a track would have been under pooling, with and without each system's team
in the pool.

Over what people have judged: of a sample the rest is not wrong but unknown, so it is left out,
where pooling would count it as wrong. What people found when they read documents in full is the
human team's, which is always in the pool, whether a system was asked about it or not. Chaganty
2018, section 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from estimators.pooling import METRICS, PoolingBias, Scores, pooling_bias
from kbpo.evaluation.data import read
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.recall import TrackWithRecall, recall_of
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


HEAD = ["metric", "quantity", "rank", "team", "run", "true", "unpooled", "bias"]


def study(track: Track) -> Study | None:
    """The study of a track as it is now; None before two teams have judged predictions on it."""
    data, kind = read(track), recall_of(track)
    if not data.judged.size or data.facts is None or kind is None:
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
    pool = _with_marked(kind, data, labelled, columns, label[labelled], human)
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
    alike: Ids
    """Code of what it says, the same in whatever document"""
    human: Bools

    def bias(self, teams: Ids, metric: str) -> PoolingBias:
        """The bias of every system. What is known only because it is true would raise its
        precision: of that only the finding counts, as recall.
        """

        def of(member: Bools) -> PoolingBias:
            return pooling_bias(
                member, self.label, self.alike, teams, human=self.human, metric=metric
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


def _with_marked(
    kind: TrackWithRecall, data: Data, places: Ids, columns: Ids, label: Floats, human: Bools
) -> _Pool:
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
    by_row, by_fact = kind.across_documents(data.pool, facts, row, marked, predicted)
    return _Pool(
        member=np.concatenate(
            [
                data.pool.member[row][:, columns].toarray() > 0,
                facts.predicted[predicted][:, columns] & (predicted >= 0)[:, None],
            ]
        ),
        drawn=np.repeat([True, False], [row.size, marked.size]),
        label=np.concatenate([label, np.ones(marked.size)]),
        alike=np.unique(np.concatenate([by_row, by_fact]), return_inverse=True)[1].astype(np.int64),
        human=np.concatenate([human, np.ones(marked.size, dtype=np.bool_)]),
    )
