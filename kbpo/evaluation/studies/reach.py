"""Tells what samples reach: which entities recur among drawn documents, and what a thousand draws
of a run would see.

Diagnostics for admins, by simulation: nothing of it is drawn, stored or used by an estimate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from estimators.second_stage import proportional, systematic, tf_idf
from kbpo import clock
from kbpo.corpus.frequency import FREQUENCIES
from kbpo.pool.pool import read_pool
from kbpo.sampling.documents.draw import UNIFORM_SHARE, first_stage
from kbpo.sampling.models import DocumentSample
from kbpo.submissions.models import Submission
from kbpo.tracks.frequency import classes, limits
from kbpo.tracks.models import Track
from kbpo.tracks.recall import AboutEntities, kind_with_recall
from scoring.arrays import Floats, Ids, Matrix

DESIGNS = ("uniform", "two_stage")
DOCUMENTS = 200
SIMULATED = 25
"""Draws of documents that are averaged"""
DRAWS, REPEATS = 1_000, 100
SEED = 20_171_017


@dataclass(frozen=True, eq=False)
class Incidence:
    """Which document names which entity, and how often."""

    table: Matrix
    """(D, E) counts"""
    source: str
    """Of `Named`"""
    people: NDArray[np.bool_]
    """(E,) whether each is a person or an organisation"""

    @property
    def frequency(self) -> Ids:
        """(E,) documents that name each entity."""
        return np.asarray((self.table > 0).sum(axis=0)).ravel().astype(np.int64)

    @property
    def limits(self) -> tuple[float, float]:
        """Document frequency up to which an entity is rare, and above which it is frequent."""
        return limits(self.frequency, self.people)

    @property
    def classes(self) -> NDArray[np.str_]:
        """(E,) low, medium or high."""
        return classes(self.frequency, self.limits)

    def by_frequency(self) -> list[tuple[int, int]]:
        """(number of documents, number of entities that occur in so many), ascending."""
        return sorted(Counter(self.frequency[self.frequency > 0].tolist()).items())


@dataclass(frozen=True)
class Sharing:
    """What documents of a sample have in common, the mean of several draws."""

    design: str
    n: int
    by_documents: list[tuple[int, float]]
    """(number of drawn documents, mean number of entities that are in so many)"""
    shared: dict[str, float]
    """class of frequency -> mean number of entities that two or more drawn documents name"""
    documents: float
    """mean number of drawn documents that share an entity with another one"""


@dataclass(frozen=True)
class Reach:
    """What draws from one distribution of a submission see, the mean of many repeats."""

    kind: str
    entities: dict[str, float]
    """class of frequency -> distinct entities that the draws are about"""
    strata: float
    """distinct strata"""
    several: float
    """distinct entities of which the draws say more than one thing"""
    by_stratum: dict[str, float]
    """stratum -> draws; those that there are and that no draw reached are there with 0"""


def read_incidence(track: Track) -> Incidence | None:
    """The entities of a track's corpus: of the mentions that came with it, else those that its runs
    predict something of, else those that people found in annotated documents. None if none is
    there. Raises LookupError for a kind of track
    that reads no documents in full.
    """
    total = track.corpus.n_test
    read = DocumentSample.objects.filter(track=track, settled_at__isnull=False)
    named = kind_with_recall(track).entities_named(
        list(read.values_list("document_id", flat=True)), clock.now()
    )
    if not named.rows:
        return None
    documents, entities, counts, of_people = zip(*named.rows, strict=True)
    _, document = np.unique(np.array(documents), return_inverse=True)
    _, entity = np.unique(np.array(entities), return_inverse=True)
    shape = (max(total, int(document.max()) + 1), int(entity.max()) + 1)
    table = sparse.csr_array((np.array(counts, dtype=np.float64), (document, entity)), shape=shape)
    people = np.zeros(shape[1], dtype=np.bool_)
    np.logical_or.at(people, entity, np.array(of_people, dtype=np.bool_))
    return Incidence(table, named.source, people)


def sharing(found: Incidence, n: int | None = None) -> list[Sharing]:
    """What n documents share, drawn uniformly and in two stages; 200 if none is given, or a third
    of a small corpus.

    The second stage is simulated with all entities of the first, as if its annotation missed none.
    """
    total = found.table.shape[0]
    n = min(n or min(DOCUMENTS, -(-total // 3)), total)
    return [_sharing(found, design, n) for design in DESIGNS]


def _sharing(incidence: Incidence, design: str, n: int) -> Sharing:
    rng = np.random.default_rng(SEED)
    present, classes = sparse.csr_array((incidence.table > 0).astype(np.float64)), incidence.classes
    times: Counter[int] = Counter()
    shared: Counter[str] = Counter()
    documents = 0
    for _ in range(SIMULATED):
        drawn = _draw(incidence, design, n, rng)
        inside = present[drawn]
        number = np.asarray(inside.sum(axis=0)).ravel().astype(np.int64)
        times.update(number[number > 0].tolist())
        shared.update(classes[number > 1].tolist())
        documents += int((np.asarray(inside @ (number > 1)).ravel() > 0).sum())
    return Sharing(
        design,
        n,
        [(times_drawn, total / SIMULATED) for times_drawn, total in sorted(times.items())],
        {name: shared[name] / SIMULATED for name in FREQUENCIES},
        documents / SIMULATED,
    )


def _draw(incidence: Incidence, design: str, n: int, rng: np.random.Generator) -> Ids:
    order = rng.permutation(incidence.table.shape[0])
    n_first = min(first_stage(n), n)
    if design == "uniform" or n_first == n:
        return order[:n]
    reached = np.flatnonzero(np.asarray(incidence.table[order[:n_first]].sum(axis=0)).ravel() > 0)
    part = sparse.coo_array(incidence.table[:, reached])
    weight = tf_idf(part.coords[0], part.coords[1], part.data, incidence.table.shape[0])
    remaining = order[n_first:]
    drawn = systematic(proportional(weight[remaining], n - n_first, uniform=UNIFORM_SHARE), rng)
    return np.concatenate([order[:n_first], remaining[drawn]])


def reach(submission: Submission) -> list[Reach]:
    """What so many draws of a submission would reach under each distribution of its kind of track,
    shown or not: what a distribution reaches is what it is chosen for.
    """
    track = submission.track
    kind = kind_with_recall(track)
    pool = read_pool(track, [submission.pk], list(kind.measures.distributions))
    trait = kind.traits(pool.instance, pool.systems)["frequency"]
    about, names = kind.about_entities(submission.pk), kind.stratum_names()
    rng = np.random.default_rng(SEED)
    return [
        _reach(
            distribution,
            p.toarray().ravel(),
            about,
            pool.stratum,
            trait.names[trait.code],
            names,
            rng,
        )
        for distribution, p in pool.p.items()
    ]


def _reach(
    kind: str,
    p: Floats,
    about: AboutEntities,
    stratum: Ids,
    frequency: NDArray[np.str_],
    names: Mapping[int, str],
    rng: np.random.Generator,
) -> Reach:
    ends = np.cumsum(p)
    _, first_of_entity = np.unique(about.entity, return_index=True)
    class_of = frequency[first_of_entity]
    entities: Counter[str] = Counter()
    by_stratum: Counter[int] = Counter()
    strata = several = 0
    for _ in range(REPEATS):
        drawn = np.minimum(
            np.searchsorted(ends, rng.random(DRAWS) * ends[-1], side="right"), p.size - 1
        )
        entities.update(class_of[np.unique(about.entity[drawn])].tolist())
        by_stratum.update(stratum[drawn].tolist())
        strata += np.unique(stratum[drawn]).size
        _, first_draws = np.unique(about.fact[drawn], return_index=True)
        several += int((np.bincount(about.entity[drawn[first_draws]]) > 1).sum())
    return Reach(
        kind,
        {name: entities[name] / REPEATS for name in FREQUENCIES},
        strata / REPEATS,
        several / REPEATS,
        {names[pk]: number / REPEATS for pk, number in by_stratum.most_common()}
        | {name: 0.0 for pk, name in sorted(names.items()) if pk not in by_stratum},
    )
