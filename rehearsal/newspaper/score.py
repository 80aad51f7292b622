"""The true scores of a run, counted from the gold standard."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from rehearsal.newspaper.annotate import Annotated, Span
from rehearsal.newspaper.extract import Prediction, Run

DISTRIBUTIONS = ("instance", "relation", "entity", "entity_relation")
CRITERIA = ("relation", "linking", "correct")


class Gold:
    """What is true of the documents: relations between mentions, and which mentions are one."""

    def __init__(self, documents: Sequence[Annotated]) -> None:
        self.relations: set[tuple[str, Span, str, Span]] = set()
        self.cluster: dict[tuple[str, Span], int] = {}
        self.name: dict[tuple[str, int], str] = {}
        self.text = {document.id: document.text for document in documents}
        for document in documents:
            for cluster in document.clusters:
                self.name[document.id, cluster.index] = document.text[slice(*cluster.canonical())]
            self.relations |= {
                (document.id, left, name, right) for left, name, right, _ in document.gold()
            }
            self.cluster |= {
                (document.id, span): cluster.index for span, cluster in document.mentions()
            }
        self.facts = {self.fact(*relation) for relation in self.relations}

    def fact(
        self, document: str, subject: Span, predicate: str, object_: Span
    ) -> tuple[str, int, str, int]:
        """The fact that a relation between two mentions states."""
        return document, self.cluster[document, subject], predicate, self.cluster[document, object_]

    def judge(self, prediction: Prediction) -> dict[str, bool]:
        """Right or wrong by each criterion."""
        key = (prediction.document, prediction.subject, prediction.predicate, prediction.object)
        relation = key in self.relations
        linking = all(
            self.refers(prediction.document, span, canonical)
            for span, canonical in (
                (prediction.subject, prediction.subject_canonical),
                (prediction.object, prediction.object_canonical),
            )
        )
        return {"relation": relation, "linking": linking, "correct": relation and linking}

    def refers(self, document: str, span: Span, claimed: Span) -> bool:
        """Whether a mention refers to what is claimed: to what reads like the canonical mention of
        its cluster, or to another mention of the cluster; all that refers to an entity here is a
        name.
        """
        cluster = self.cluster[document, span]
        if self.text[document][slice(*claimed)] == self.name[document, cluster]:
            return True
        return claimed != span and self.cluster[document, claimed] == cluster


def weights(predictions: Sequence[Prediction]) -> dict[str, list[float]]:
    """The probability of each prediction under the four distributions (Chaganty 2018, section
    3.6.1).
    """
    relation = Counter(p.predicate for p in predictions)
    subject = Counter(p.subject_entity for p in predictions)
    facts_of = defaultdict(set)
    for p in predictions:
        facts_of[p.subject_entity].add((p.predicate, p.object_entity))
    raw = {
        "instance": [1.0 for _ in predictions],
        "relation": [1 / relation[p.predicate] for p in predictions],
        "entity": [1 / subject[p.subject_entity] for p in predictions],
        "entity_relation": [
            len(facts_of[p.subject_entity]) / (subject[p.subject_entity] * relation[p.predicate])
            for p in predictions
        ],
    }
    totals = {kind: sum(values) for kind, values in raw.items()}
    return {kind: [value / totals[kind] for value in values] for kind, values in raw.items()}


def score(run: Run, gold: Gold) -> dict[str, object]:
    """The run's true precision under each distribution, its micro recall of facts, and the counts
    behind them.
    """
    verdicts = [gold.judge(prediction) for prediction in run.predictions]
    facts_found: dict[str, set[tuple[str, int, str, int]]] = {"relation": set(), "correct": set()}
    for prediction, verdict in zip(run.predictions, verdicts, strict=True):
        for criterion, facts in facts_found.items():
            if verdict[criterion]:
                facts.add(
                    gold.fact(
                        prediction.document,
                        prediction.subject,
                        prediction.predicate,
                        prediction.object,
                    )
                )
    precision = {
        kind: {
            c: sum(w for w, v in zip(probability, verdicts, strict=True) if v[c]) for c in CRITERIA
        }
        for kind, probability in weights(run.predictions).items()
    }
    return {
        "team": run.profile.team,
        "description": run.profile.description,
        "predictions": len(run.predictions),
        "right": {c: sum(v[c] for v in verdicts) for c in CRITERIA},
        "precision": precision,
        "facts_found": {c: len(facts) for c, facts in facts_found.items()},
        "recall": {c: len(facts) / len(gold.facts) for c, facts in facts_found.items()},
    }
