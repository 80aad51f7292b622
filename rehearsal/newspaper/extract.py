"""What imperfect systems extract from annotated documents: right and wrong relations, right and
wrong links.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from formats.relation import closest_pair
from rehearsal.newspaper.annotate import Annotated, Cluster, Span
from rehearsal.newspaper.invent import Entity, Filler, World
from rehearsal.newspaper.lexicon import PREDICATE_INVERSE, PREDICATE_TYPES
from rehearsal.newspaper.phrases import FACTS
from rehearsal.newspaper.profiles import CATEGORIES, PROFILES, Profile

TRUE, TRAP, CONFUSED, ARGUMENT, SPURIOUS = range(len(CATEGORIES))
FULL_DATE = re.compile(r"[A-Z][a-z]+ \d{1,2}, \d{4}")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Prediction:
    """A relation that a system predicts about two mentions, with the canonical mentions and
    entities that it gives.
    """

    document: str
    subject: Span
    predicate: str
    object: Span
    subject_canonical: Span
    object_canonical: Span
    subject_entity: str
    object_entity: str  # of a string value: the string that is submitted
    provenance: tuple[Span, ...]
    confidence: float


@dataclass
class Candidates:
    """All pairs of a sentence with all predicates that their types allow, and how each of them
    comes about.
    """

    where: list[tuple[int, int, int, str, int]] = field(
        default_factory=list
    )  # document, sentence, left, name, right
    category: list[int] = field(default_factory=list)
    ease: list[float] = field(default_factory=list)
    known: list[bool] = field(default_factory=list)


@dataclass
class Run:
    """A system's output: its predictions, and the mentions, type and link of each of its
    entities.
    """

    profile: Profile
    predictions: list[Prediction]
    mentions: dict[str, list[tuple[str, Span, bool]]]  # entity: (document, span, canonical?)
    types: dict[str, str]
    links: dict[str, str]


def stream(seed: int, *names: str) -> np.random.Generator:
    """A generator of its own for each name, so that one system's draws do not depend on
    another's.
    """
    return np.random.default_rng([seed, *(crc32(name.encode()) for name in names)])


def extract(documents: Sequence[Annotated], world: World, seed: int) -> list[Run]:
    """The runs of all systems."""
    candidates = _candidates(documents, world)
    scores: dict[str, Floats] = {}
    runs = []
    for profile in PROFILES:
        score = _vote(profile, scores) if profile.members else _score(profile, candidates, seed)
        scores[profile.name] = score
        runs.append(_run(profile, score, candidates, documents, world, seed))
    return runs


def _candidates(documents: Sequence[Annotated], world: World) -> Candidates:
    allowed: dict[tuple[str, str], list[str]] = {}
    for predicate, types in PREDICATE_TYPES.items():
        for pair in types:
            allowed.setdefault(pair, []).append(predicate)
    facts_known = _encyclopedia(world)
    out = Candidates()
    for number, document in enumerate(documents):
        for place, sentence in enumerate(document.sentences):
            here = [c.index for c in document.clusters if document.inside(c.index, sentence.span)]
            related = {(left, right) for left, _, right in sentence.true}
            roles: set[tuple[object, object]] = {(left, name) for left, name, _ in sentence.true}
            roles |= {(name, right) for _, name, right in sentence.true}
            for left in here:
                for right in here:
                    a, b = document.clusters[left].filler, document.clusters[right].filler
                    for name in allowed.get((a.type, b.type), []) if left != right else []:
                        key = (left, name, right)
                        out.where.append((number, place, *key))
                        if key in sentence.true:
                            category = TRUE
                        elif key in sentence.seeming:
                            category = TRAP
                        elif (left, right) in related:
                            category = CONFUSED
                        else:
                            category = (
                                ARGUMENT
                                if (left, name) in roles or (name, right) in roles
                                else SPURIOUS
                            )
                        out.category.append(category)
                        out.ease.append(sentence.true.get(key, sentence.seeming.get(key, 0.5)))
                        out.known.append((_key(a), name, _key(b)) in facts_known)
    return out


def _key(filler: Filler) -> object:
    return filler.key if isinstance(filler, Entity) else filler.text


def _encyclopedia(world: World) -> set[tuple[object, str, object]]:
    """What a reference work knows: about half of what is true of the world."""
    facts = set()
    for bindings in world.bindings.values():
        for binding in bindings:
            for left, name, right in FACTS[binding.frame]:
                a, b = _key(binding.slots[left]), _key(binding.slots[right])
                if crc32(f"{a} {name} {b}".encode()) % 100 < 55:
                    facts |= {(a, name, b), (b, PREDICATE_INVERSE.get(name, ""), a)}
    return facts


def _score(profile: Profile, candidates: Candidates, seed: int) -> Floats:
    """The system's log odds that each candidate is a relation."""
    n = len(candidates.where)
    category = np.array(candidates.category)
    # What is hard for one system is often hard for all; what a team's method misses, its other runs
    # miss too.
    common = stream(seed, "everybody").normal(size=n)
    team = stream(seed, profile.team).normal(size=n)
    own = stream(seed, profile.model).normal(size=n)
    bias = np.array([profile.weak.get(name, 0.0) for _, _, _, name, _ in candidates.where])
    score: Floats = (
        np.array(profile.means)[category]
        + profile.ease * (np.array(candidates.ease) - 0.5)
        + profile.known * np.array(candidates.known)
        + bias
        + 0.6 * profile.noise * common
        + 0.4 * profile.noise * team
        + profile.noise * own
    )
    return score


def _vote(profile: Profile, scores: dict[str, Floats]) -> Floats:
    votes = np.stack([scores[name] > _threshold(name) for name in profile.members])
    margins = np.stack([scores[name] - _threshold(name) for name in profile.members])
    agreed: Floats = np.where(
        votes.sum(axis=0) >= profile.votes, 0.5 + np.abs(margins.mean(axis=0)), -9.0
    )
    return agreed


def _threshold(name: str) -> float:
    return next(profile.threshold for profile in PROFILES if profile.name == name)


def _run(
    profile: Profile,
    score: Floats,
    candidates: Candidates,
    documents: Sequence[Annotated],
    world: World,
    seed: int,
) -> Run:
    run = Run(profile, [], {}, {}, {})
    chosen: dict[int, list[int]] = {}
    for index in np.flatnonzero(score > profile.threshold).tolist():
        chosen.setdefault(candidates.where[index][0], []).append(index)
    best: dict[tuple[str, Span, str, Span], Prediction] = {}
    namesakes = _namesakes(world)
    for number, indexes in chosen.items():
        linking = _Linking(
            documents[number],
            profile,
            namesakes,
            stream(seed, profile.linker, documents[number].id),
            stream(seed, "mentions", documents[number].id),
        )
        for index in indexes:
            prediction = _prediction(
                documents[number], linking, candidates.where[index], profile, float(score[index])
            )
            if prediction is None:
                continue
            key = (prediction.document, prediction.subject, prediction.predicate, prediction.object)
            if key not in best or best[key].confidence < prediction.confidence:
                best[key] = prediction
        linking.record(run)
    run.predictions = [best[key] for key in sorted(best)]
    return run


def _namesakes(world: World) -> dict[str, list[Entity]]:
    families: dict[str, list[Entity]] = {}
    for person in world.people:
        families.setdefault(person.last, []).append(person)
    return families


class _Linking:
    """A system's own idea of which mentions of a document are one entity, and which entity that
    is.
    """

    def __init__(
        self,
        document: Annotated,
        profile: Profile,
        namesakes: dict[str, list[Entity]],
        own: np.random.Generator,
        common: np.random.Generator,
    ) -> None:
        self.document = document
        self.cluster: dict[Span, int] = {}
        extra = len(document.clusters)
        for span, cluster in document.mentions():
            # Half of the hard mentions are hard for every system.
            chance = min(own.random(), common.random() if own.random() < 0.5 else 1.0)
            self.cluster[span] = target = self._resolve(span, cluster, profile, chance, own, extra)
            extra += target == extra
        self.spans: dict[int, list[Span]] = {}
        for span, index in self.cluster.items():
            self.spans.setdefault(index, []).append(span)
        self.canonical = {
            index: min(s, key=lambda m: (m[0] - m[1], m)) for index, s in self.spans.items()
        }
        self.names: dict[int, tuple[str, str, str]] = {}
        self._name(profile, namesakes, own)

    def _resolve(
        self,
        span: Span,
        cluster: Cluster,
        profile: Profile,
        chance: float,
        own: np.random.Generator,
        extra: int,
    ) -> int:
        if not isinstance(cluster.filler, Entity) or span == cluster.canonical():
            return cluster.index
        text, kind = self.document.text[span[0] : span[1]], cluster.filler.type
        of_kind = [c for c in self.document.clusters if c.filler.type == kind and c is not cluster]
        alike = [
            c for c in of_kind if isinstance(c.filler, Entity) and text in c.filler.name.split()
        ]
        if kind == "PER" and alike and chance < profile.surname:
            return alike[int(own.integers(len(alike)))].index
        if kind == "ORG" and text != cluster.filler.name and chance < profile.alias:
            return extra  # not recognised as a name of something mentioned before
        if of_kind and chance < profile.stray:
            return of_kind[int(own.integers(len(of_kind)))].index
        return cluster.index

    def _name(
        self, profile: Profile, namesakes: dict[str, list[Entity]], own: np.random.Generator
    ) -> None:
        taken = {c.filler.key for c in self.document.clusters if isinstance(c.filler, Entity)}
        for index in sorted(self.spans):
            begin, end = self.canonical[index]
            in_text = index < len(self.document.clusters)
            filler = self.document.clusters[index].filler if in_text else None
            chance = own.random()
            if filler is not None and not isinstance(filler, Entity):
                self.names[index] = (self.document.text[begin:end], filler.type, "")
                continue
            rivals = namesakes.get(filler.last, []) if filler is not None else []
            rivals = [person for person in rivals if person.key not in taken]
            if filler is None or chance < profile.split:
                kind = filler.type if filler is not None else "ORG"
                self.names[index] = (f"N{self.document.id}_{index}", kind, "")
            elif rivals and chance < profile.split + profile.merge:
                taken.add(rivals[0].key)  # the first of that name, whoever it is
                self.names[index] = (f"W{rivals[0].key}", "PER", rivals[0].link)
            else:
                self.names[index] = (f"W{filler.key}", filler.type, filler.link)

    def record(self, run: Run) -> None:
        """Nothing; the entities that the document's predictions use are entered in the run."""
        for index, (name, kind, link) in self.names.items():
            if index < len(self.document.clusters) and not isinstance(
                self.document.clusters[index].filler, Entity
            ):
                continue
            run.types[name] = kind
            if link:
                run.links[name] = link
            run.mentions.setdefault(name, []).extend(
                (self.document.id, span, span == self.canonical[index])
                for span in sorted(self.spans[index])
            )


def _prediction(
    document: Annotated,
    linking: _Linking,
    where: tuple[int, int, int, str, int],
    profile: Profile,
    score: float,
) -> Prediction | None:
    _, place, left, predicate, right = where
    sentence = document.sentences[place].span
    view = document.view()
    pair = closest_pair(view, document.inside(left, sentence), document.inside(right, sentence))
    if pair is None:
        return None
    subject, object_ = linking.cluster[pair[0]], linking.cluster[pair[1]]
    if subject == object_:
        return None
    inside = [
        [m for m in sorted(linking.spans[c]) if sentence[0] <= m[0] and m[1] <= sentence[1]]
        for c in (subject, object_)
    ]
    value = linking.names[object_][1] in ("DATE", "TITLE")
    if value:
        inside[1] = [pair[1]]
    pair = closest_pair(view, *inside)
    if pair is None:
        return None
    # A string that occurs twice would be found at the wrong place: point at it.
    repeated = value and document.text.count(document.text[slice(*pair[1])], *sentence) > 1
    provenance = pair if profile.tight or repeated else (sentence,)
    confidence = 1 / (1 + np.exp(-(profile.boast + profile.slope * (score - profile.threshold))))
    entity = (
        _written(document.text[slice(*pair[1])], profile) if value else linking.names[object_][0]
    )
    return Prediction(
        document.id,
        pair[0],
        predicate,
        pair[1],
        linking.canonical[subject],
        pair[1] if value else linking.canonical[object_],
        linking.names[subject][0],
        entity,
        provenance,
        round(float(np.clip(confidence, 0.01, 0.99)), 3),
    )


def _written(text: str, profile: Profile) -> str:
    """A string value as the system writes it: some put dates into the form 2013-03-17."""
    if profile.iso_dates and FULL_DATE.fullmatch(text):
        return datetime.strptime(text, "%B %d, %Y").date().isoformat()
    return text
