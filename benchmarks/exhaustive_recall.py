"""Recall of every system from documents annotated whole, against the truth, under both ways to draw
the documents.

usage: python benchmarks/exhaustive_recall.py [REPEATS] [DOCUMENTS]
       (default: 400 repeats, 400 documents)

Generated documents, ten systems, a known truth. Each repeat draws a quarter of the documents,
uniformly or in two stages (20 % uniform; then by the TF-IDF of the entities that annotation found
in those, half of it uniform). Three workers read each of them and mark every mention with chance
0.8; a mention is settled when two of them marked it, and of the settled ones every relation is
found. Predictions are asked with chance 0.3 each, and the answers are right. Recall is estimated
with the recorded probabilities of the documents and as if all were equal; with what annotation
finds taken for everything, and with what it misses put right by the share of verified true
predictions it had found.

The bias is in points of recall: the mean over systems, and that of the worst; "error" is the Monte
Carlo standard error of the worst. Coverage is that of 80 % intervals (value ± t √V), the mean over
systems.
"""

import os
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbpo.settings")
import django

django.setup()

from scipy import sparse  # noqa: E402
from scipy.stats import t as student  # noqa: E402

from benchmarks import tables  # noqa: E402
from estimators.misses import found_share, with_misses  # noqa: E402
from estimators.recall import recall  # noqa: E402
from estimators.second_stage import proportional, systematic, tf_idf  # noqa: E402
from kbpo.corpus.names import count_names  # noqa: E402
from kbpo.sampling.documents.draw import UNIFORM_SHARE, first_stage  # noqa: E402
from rehearsal.newspaper.extract import extract  # noqa: E402
from rehearsal.newspaper.invent import Entity  # noqa: E402
from rehearsal.newspaper.score import Gold  # noqa: E402
from rehearsal.newspaper.write import imagine  # noqa: E402

WORKERS, MENTION_RECALL, ASKED, SHARE = 3, 0.8, 0.3, 0.25
DESIGNS = ("uniform", "two_stage")
ANNOTATORS = {"perfect": 1.0, "3 × 0.8": MENTION_RECALL}


class World:
    """The truth as arrays: mentions, gold relations between them, facts, and what each system
    predicts.
    """

    def __init__(self, n_documents: int, seed: int) -> None:
        world, documents = imagine(n_documents, seed)
        gold, runs = Gold(documents), extract(documents, world, seed)
        place = {one.id: at for at, one in enumerate(documents)}
        self.n_documents = n_documents
        self.names = [run.profile.name for run in runs]
        mention = {(one.id, span): None for one in documents for span, _ in one.mentions()}
        mention = {key: at for at, key in enumerate(mention)}
        self.n_mentions = len(mention)
        facts = {fact: at for at, fact in enumerate(sorted(gold.facts))}
        relations = sorted(gold.relations)
        self.left = np.array([mention[document, subject] for document, subject, _, _ in relations])
        self.right = np.array([mention[document, object_] for document, _, _, object_ in relations])
        self.fact = np.array([facts[gold.fact(*one)] for one in relations])
        self.fact_document = np.array([place[fact[0]] for fact in facts])
        self._read_runs(runs, gold, facts, place)
        self._read_names(documents, mention)

    def _read_runs(self, runs, gold, facts, place) -> None:
        """The facts that systems predict: one row each, with its document, its truth, and who
        predicts it.
        """
        rows: dict[object, int] = {}
        predicted = []
        for column, run in enumerate(runs):
            for one in run.predictions:
                fact = gold.fact(one.document, one.subject, one.predicate, one.object)
                predicted.append((rows.setdefault(fact, len(rows)), column))
        self.members = np.zeros((len(rows), len(runs)))
        self.members[tuple(np.array(predicted).T)] = 1
        self.facts, self.predicted = list(facts), list(rows)
        self.true = np.array([float(fact in facts) for fact in rows])
        self.row_document = np.array([place[fact[0]] for fact in rows])
        self.row_fact = np.array([facts.get(fact, -1) for fact in rows])
        self.predicted = np.zeros(len(facts), dtype=np.bool_)
        self.predicted[self.row_fact[self.row_fact >= 0]] = True
        self.truth = self.true @ self.members / len(facts)

    def _read_names(self, documents, mention) -> None:
        """How often each document names each entity, as TF-IDF, and which mention is of which
        entity.
        """
        codes: dict[object, int] = {}
        names: dict[str, int] = {}
        self.entity = np.full(self.n_mentions, -1)
        for one in documents:
            for cluster in one.clusters:
                if isinstance(cluster.filler, Entity):
                    code = codes.setdefault(cluster.filler.key, len(codes))
                    names.setdefault(one.text[slice(*cluster.canonical())], code)
                    for span in cluster.spans:
                        self.entity[mention[one.id, span]] = code
        triples = [
            (at, code, number)
            for at, one in enumerate(documents)
            for code, number in count_names(one.text, names)
        ]
        document, entity, number = (np.array(column) for column in zip(*triples, strict=True))
        found_in = np.bincount(entity, minlength=len(codes))
        idf = np.log(self.n_documents / np.maximum(found_in, 1))
        self.weight = sparse.csr_array(
            (number * idf[entity], (document, entity)), shape=(self.n_documents, len(codes))
        )
        everything = np.asarray(self.weight.sum(axis=1)).ravel()
        np.testing.assert_allclose(everything, tf_idf(document, entity, number, self.n_documents))
        self.mention_document = np.zeros(self.n_mentions, dtype=np.int64)
        place = {one.id: at for at, one in enumerate(documents)}
        for (key, _), at in mention.items():
            self.mention_document[at] = place[key]

    def annotate(self, chance: float, rng: np.random.Generator):
        """Which mentions annotation would settle, and which facts it would then find, document by
        document.
        """
        marked = rng.binomial(WORKERS, chance, self.n_mentions)
        settled = 2 * marked > WORKERS
        found = np.zeros(self.fact_document.size, dtype=np.bool_)
        found[self.fact[settled[self.left] & settled[self.right]]] = True
        return settled, found


def draw(world: World, design: str, n: int, settled, rng: np.random.Generator):
    """The documents of a design, and the recorded probability of each (None: all the same)."""
    if design == "uniform":
        return rng.permutation(world.n_documents)[:n], None
    order = rng.permutation(world.n_documents)
    first, rest = order[: first_stage(n)], order[first_stage(n) :]
    known = settled & np.isin(world.mention_document, first) & (world.entity >= 0)
    entities = np.unique(world.entity[known])
    weight = np.asarray(world.weight[:, entities].sum(axis=1)).ravel()
    pi = proportional(weight[rest], n - first.size, uniform=UNIFORM_SHARE)
    drawn = systematic(pi, rng)
    return np.concatenate([first, rest[drawn]]), np.concatenate([np.ones(first.size), pi[drawn]])


def estimate(world: World, drawn, inclusion, found, rng: np.random.Generator, said=None):
    """Recall as annotation finds it, the share that it finds, and recall with what it misses put
    right. `said` is what people say of each predicted fact (NaN: they gave it up); the truth if it
    is not told.
    """
    said = world.true if said is None else said
    position = np.full(world.n_documents, -1)
    position[drawn] = np.arange(drawn.size)
    seen = position[world.fact_document]
    new = found & ~world.predicted & (seen >= 0)
    counts = np.bincount(seen[new], minlength=drawn.size)
    rows = np.flatnonzero(rng.random(said.size) < ASKED)
    answered = ~np.isnan(said[rows])
    pi = np.full(answered.sum(), ASKED * answered.mean())
    rows = rows[answered]
    g = np.full(rows.size, 0.5)
    plain = recall(
        world.members[rows],
        pi,
        said[rows],
        g,
        world.members.sum(axis=0) / 2,
        world.true.size / 2,
        counts,
        world.n_documents,
        inclusion=inclusion,
    )
    marked = np.where(world.row_fact >= 0, found[world.row_fact], False)[rows]
    share = found_share(
        said[rows],
        marked,
        np.ones(rows.size),
        pi,
        position[world.row_document[rows]],
        plain.design,
    )
    return plain, share, with_misses(plain, share)


def measure(world: World, design: str, annotators: str, repeats: int, n: int):
    """(recorded, corrected) -> values and hits of every system, (repeats, m); and the shares that
    annotation found.
    """
    rng = np.random.default_rng([2017, DESIGNS.index(design), list(ANNOTATORS).index(annotators)])
    values, hits = defaultdict(list), defaultdict(list)
    shares = []
    for _ in range(repeats):
        settled, found = world.annotate(ANNOTATORS[annotators], rng)
        drawn, inclusion = draw(world, design, n, settled, rng)
        for recorded in (True, False) if design == "two_stage" else (True,):
            plain, share, corrected = estimate(
                world, drawn, inclusion if recorded else None, found, rng
            )
            for name, one in (("no", plain.recall), ("yes", corrected.recall)):
                values[recorded, name].append(one.value)
                half = student.ppf(0.9, one.degrees_of_freedom) * np.sqrt(one.variance)
                hits[recorded, name].append(np.abs(one.value - world.truth) <= half)
            if recorded:
                shares.append(share.value)
    arrays = [{key: np.array(some) for key, some in each.items()} for each in (values, hits)]
    return arrays[0], arrays[1], shares


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    n_documents = int(sys.argv[2]) if len(sys.argv) > 2 else 400
    began, world = time.monotonic(), World(n_documents, seed=1)
    n = round(SHARE * n_documents)
    print(
        f"{n_documents} documents, {world.fact_document.size} true facts, of which"
        f" {int((~world.predicted).sum())} in no system; {n} documents annotated, {repeats}"
        f" repeats; recall {min(world.truth):.3f} to {max(world.truth):.3f}\n"
    )
    rows, by_system = [], []
    for design in DESIGNS:
        for annotators in ANNOTATORS:
            values, hits, shares = measure(world, design, annotators, repeats, n)
            for (recorded, corrected), some in values.items():
                bias = 100 * (some.mean(axis=0) - world.truth)
                error = 100 * some.std(axis=0) / np.sqrt(repeats)
                worst = int(np.argmax(np.abs(bias)))
                head = [design, annotators, "recorded" if recorded else "as if equal", corrected]
                covered = hits[recorded, corrected].mean(axis=0)
                rows.append(
                    [
                        *head,
                        float(bias.mean()),
                        float(bias[worst]),
                        float(error[worst]),
                        float(100 * some.std(axis=0).mean()),
                        float(covered.mean()),
                        float(np.mean(shares)),
                    ]
                )
                by_system += [
                    [*head, name, float(true), float(mean), float(off), float(se), float(share)]
                    for name, true, mean, off, se, share in zip(
                        world.names,
                        world.truth,
                        some.mean(axis=0),
                        bias,
                        error,
                        covered,
                        strict=True,
                    )
                ]
    head = ["documents", "annotators", "probabilities", "misses put right"]
    tables.show(
        "exhaustive_recall",
        [*head, "bias", "worst bias", "error", "spread", "coverage 80 %", "share found"],
        rows,
    )
    tables.write(
        "exhaustive_recall_systems",
        [*head, "system", "truth", "mean", "bias", "error", "coverage 80 %"],
        by_system,
    )
    print(
        f"every system: {tables.OUT / 'exhaustive_recall_systems.csv'};"
        f" {time.monotonic() - began:.0f} s"
    )


if __name__ == "__main__":
    main()
