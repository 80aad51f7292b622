"""News stories about the fictional world, each with everything that its sentences say."""

import datetime
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from rehearsal.newspaper import lexicon as lx
from rehearsal.newspaper.feints import DENIED, TOGETHER
from rehearsal.newspaper.invent import (
    Binding,
    Entity,
    Filler,
    Value,
    World,
    pick,
    title_at,
    written_date,
    year,
)
from rehearsal.newspaper.phrases import COMBINED, FACTS, PAST, STATED
from rehearsal.newspaper.quotes import BYLINES, FILLERS, QUOTES, SAID, SAID_BY
from rehearsal.newspaper.render import Claim, Sentence, Writer
from rehearsal.newspaper.stories import STORIES

FIRST_DAY = datetime.date(2012, 7, 2)
KIND_OF_EMPLOYER = {
    "appointment": ("company", "ngo", "alliance"),
    "sport": ("club",),
    "research": ("university",),
}


@dataclass
class Story:
    """A document: its sentences in paragraphs, its date and its headline."""

    id: str
    date: datetime.date
    title: str
    paragraphs: list[list[Sentence]] = field(default_factory=list)


@dataclass(frozen=True)
class Event:
    """Something that documents report: the kind of story and the fact at its heart."""

    kind: str
    binding: Binding
    date: datetime.date


class Newsroom:
    """Writes documents; prefers wordings that it has used least."""

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        self.world, self.rng = world, rng
        self.used: Counter[str] = Counter()
        self.famous = list(
            rng.permutation(np.array(world.people + world.organisations, dtype=object))
        )
        fame = (
            1.0 / np.arange(1, len(self.famous) + 1) ** 1.1
        )  # Zipf's law: few are always in the news
        self.fame = fame / fame.sum()
        self.reported: list[Event] = []
        self.stale: Counter[int] = Counter()

    def stories(self, documents: int) -> Iterator[Story]:
        """The given number of stories; about a third follow up on earlier ones."""
        for number in range(1, documents + 1):
            event = self._event()
            follow = any(event.binding is earlier.binding for earlier in self.reported)
            yield _Draft(self, event, follow).story(f"WIRE_{event.date:%Y%m%d}_{number:04d}")
            self.reported.append(event)

    def anybody(self, type_: str, besides: set[int]) -> Entity:
        """A person or organisation by fame, alive, and not among those given."""
        while True:
            entity: Entity = self.famous[int(self.rng.choice(len(self.famous), p=self.fame))]
            if (
                entity.type == type_
                and entity.key not in besides
                and entity.key not in self.world.gone
            ):
                return entity

    def choose(self, templates: list[str] | tuple[str, ...]) -> str:
        """One of the templates, rarely used ones first."""
        weight = np.array([1.0 / (1 + self.used[template]) ** 2 for template in templates])
        template = templates[int(self.rng.choice(len(templates), p=weight / weight.sum()))]
        self.used[template] += 1
        return template

    def _sequel(self, event: Event) -> Event:
        self.stale[id(event.binding)] += 1
        return Event(
            event.kind,
            event.binding,
            event.date + datetime.timedelta(days=int(self.rng.integers(2, 12))),
        )

    def _event(self) -> Event:
        patience = 200  # in a small world, everything has been told at some time
        while True:
            patience -= 1
            focus: Entity = self.famous[int(self.rng.choice(len(self.famous), p=self.fame))]
            options = [
                (kind, binding)
                for kind, story in STORIES.items()
                for binding in self.world.bindings.get(focus.key, [])
                if binding.frame == story.frame and self._fits(kind, binding)
            ]
            if not options:
                continue
            kind, binding = pick(options, self.rng)
            earlier = [event for event in self.reported if event.binding is binding]
            if not earlier:
                return Event(kind, binding, self._date(kind, binding))
            # Known already: the news is what has happened since, unless everybody is tired of it.
            if self.stale[id(binding)] < 3 or patience < 0:
                return self._sequel(earlier[-1])

    def _fits(self, kind: str, binding: Binding) -> bool:
        if kind not in ("obituary", "closure") and any(
            e.key in self.world.gone for e in binding.about()
        ):
            return False
        employer, title = binding.slots.get("O"), binding.slots.get("T")
        if kind == "appointment" and isinstance(title, Value) and title.text in lx.SHARED_TITLES:
            return False
        if (
            kind == "sport"
            and isinstance(title, Value)
            and title.text not in lx.PLAYERS | {"head coach"}
        ):
            return False
        if kind == "launch" and isinstance(employer, Entity) and employer.kind != "company":
            return False
        return kind not in KIND_OF_EMPLOYER or (
            isinstance(employer, Entity) and employer.kind in KIND_OF_EMPLOYER[kind]
        )

    def _date(self, kind: str, binding: Binding) -> datetime.date:
        day = binding.slots.get("D")
        if kind == "obituary" and isinstance(day, Value):
            died = datetime.datetime.strptime(day.text, "%B %d, %Y").date()
            return died + datetime.timedelta(days=int(self.rng.integers(1, 4)))
        return FIRST_DAY + datetime.timedelta(days=int(self.rng.integers(0, 540)))


class _Draft:
    """One document in the making."""

    def __init__(self, newsroom: Newsroom, event: Event, follow: bool) -> None:
        self.room, self.event, self.follow = newsroom, event, follow
        self.world, self.rng = newsroom.world, newsroom.rng
        self.cast = event.binding.about()
        self.focus = self.cast[0]
        self.kind = STORIES[event.kind]
        self.told: set[int] = {id(event.binding)}
        self.quotes = 4  # more would be an interview
        days = [
            lx.WEEKDAYS[(event.date - datetime.timedelta(days=back)).weekday()] for back in (0, 1)
        ]
        self.writer = Writer(self.cast, self.focus, days[: int(self.rng.integers(1, 3))], self.rng)
        self.seen_templates: set[str] = set()

    def story(self, document_id: str) -> Story:
        """The finished document."""
        story = Story(document_id, self.event.date, "")
        length = int(np.clip(round(self.rng.normal(15, 4.5)), 8, 24))
        headline = self.room.choose(self.kind.later if self.follow else self.kind.headlines)
        story.title = self.writer.headline(headline, self.event.binding.slots)
        sentences: list[Sentence] = [self._lead()]
        jobs = self._running_order(length)
        for job in jobs:
            if len(sentences) >= length:
                break
            if job == self._quote and "”" in sentences[-1].text:
                continue
            sentence = job()
            if sentence is not None:
                sentences.append(sentence)
        while len(sentences) < 8:
            sentences.append(self._together() or self._filler() or self._lead())
        story.paragraphs = self._paragraphs(sentences)
        return story

    def _running_order(self, length: int) -> list[Callable[[], Sentence | None]]:
        # The news first, then what people say of it, then who they are; the mixture differs from
        # story to story.
        rng = self.rng
        opening = [
            self._development,
            self._quote,
            self._development,
            self._introduction,
            self._filler,
        ]
        order: list[Callable[[], Sentence | None]] = [
            opening[i] for i in rng.permutation(5)[: int(rng.integers(3, 6))]
        ]
        weights = np.array([0.44, 0.07, 0.14, 0.1, 0.13, 0.12]) * rng.dirichlet(np.ones(6) * 6)
        makers = (
            self._background,
            self._combined,
            self._quote,
            self._denied,
            self._together,
            self._filler,
        )
        for _ in range(3 * length):
            order.append(makers[int(rng.choice(6, p=weights / weights.sum()))])
        return order

    def _paragraphs(self, sentences: list[Sentence]) -> list[list[Sentence]]:
        paragraphs: list[list[Sentence]] = [[sentences[0]]]
        room = 1
        for sentence in sentences[1:]:
            if len(paragraphs[-1]) >= room or sentence.text.startswith("“"):
                paragraphs.append([])
                room = int(self.rng.integers(1, 4))
            paragraphs[-1].append(sentence)
        return paragraphs

    def _lead(self) -> Sentence:
        texts = self.kind.follow_ups if self.follow else self.kind.leads
        lead = self._write(
            self.room.choose(texts), self.event.binding.slots, (self.event.binding.frame,), 0.7
        )
        return self._dateline(lead)

    def _dateline(self, lead: Sentence) -> Sentence:
        city = self._scene()
        prefix = f"{city.name.upper()} ({pick(BYLINES, self.rng)}) — "
        self.writer.introduced.add(city.key)
        lead.mentions = [
            (begin + len(prefix), end + len(prefix), key) for begin, end, key in lead.mentions
        ]
        lead.mentions.insert(0, (0, len(city.name), city))
        lead.text = prefix + lead.text
        return lead

    def _scene(self) -> Entity:
        for entity in self.cast:
            if entity.key in self.world.headquarters:
                return self.world.headquarters[entity.key]
            for binding in self.world.bindings[entity.key]:
                place = binding.slots.get("C")
                if binding.frame in ("home", "death") and isinstance(place, Entity):
                    return place
        return self.world.places[str(pick(list(lx.COUNTRY_OF), self.rng))]

    def _write(
        self,
        template: str,
        slots: dict[str, Filler],
        frames: tuple[str, ...],
        ease: float,
        true: bool = True,
        words: dict[str, str] | None = None,
    ) -> Sentence:
        self.seen_templates.add(template)
        sentence = self.writer.sentence(template, slots, words)
        used_slots = {
            part.split(".")[0].split(":")[-1 if part[:3] in ("the", "on:", "of:") else 0]
            for part in re.findall(r"\{([^}]*)\}", template)
            if "." not in part
        }
        for frame in frames:
            for subject, predicate, object_ in FACTS[frame]:
                if subject in used_slots and object_ in used_slots:
                    sentence.claims.append(
                        Claim(slots[subject], predicate, slots[object_], true, ease)
                    )
        return sentence

    def _fresh(self, templates: tuple[str, ...]) -> str | None:
        left = [template for template in templates if template not in self.seen_templates]
        return self.room.choose(left) if left else None

    def _development(self) -> Sentence | None:
        template = self._fresh(self.kind.developments)
        return self._write(template, self.event.binding.slots, (), 1.0) if template else None

    def _filler(self) -> Sentence | None:
        template = self._fresh(FILLERS[self.kind.topic])
        return self._write(template, self._bystanders(), (), 1.0) if template else None

    def _state(self, binding: Binding) -> Sentence | None:
        wordings = (
            PAST if any(entity.key in self.world.gone for entity in binding.about()) else STATED
        )
        template = self._fresh(wordings.get(binding.frame, ()))
        if template is None:
            return None
        self.told.add(id(binding))
        wording = wordings[binding.frame]
        ease = 1 - wording.index(template) / len(wording)
        for entity in binding.about():
            if entity not in self.cast and entity.type != "GPE" and len(self.cast) < 7:
                self.cast.append(entity)
        return self._write(template, binding.slots, (binding.frame,), ease)

    def _open(self, about: list[Entity], frames: tuple[str, ...] = ()) -> list[Binding]:
        return [
            binding
            for entity in about
            for binding in self.world.bindings.get(entity.key, [])
            if id(binding) not in self.told and (not frames or binding.frame in frames)
        ]

    def _background(self) -> Sentence | None:
        # Mostly the people of the lead; sometimes somebody who came up on the way.
        subjects = self.event.binding.about() if self.rng.random() < 0.6 else self.cast
        options = self._open([entity for entity in subjects if entity.type != "GPE"])
        return self._state(pick(options, self.rng)) if options else None

    def _introduction(self) -> Sentence | None:
        options = self._open(self.cast, ("job", "minister", "hq", "former"))
        return self._state(pick(options, self.rng)) if options else None

    def _combined(self) -> Sentence | None:
        pairs = []
        for first in self._open([e for e in self.cast if e.type != "GPE"]):
            for second in self._open(first.about()):
                shared = first.slots[
                    "P" if "P" in first.slots and first.frame != "founded" else "O"
                ]
                if (first.frame, second.frame) in COMBINED and shared in second.slots.values():
                    pairs.append((first, second))
        pairs = [(a, b) for a, b in pairs if self._agree(a, b)]
        if not pairs:
            return None
        first, second = pick(pairs, self.rng)
        template = self._fresh(COMBINED[first.frame, second.frame])
        if template is None:
            return None
        self.told |= {id(first), id(second)}
        return self._write(
            template, {**second.slots, **first.slots}, (first.frame, second.frame), 0.45
        )

    def _agree(self, own: Binding, other: Binding) -> bool:
        shared = set(own.slots) & set(other.slots) - {"Y", "D"}
        living = all(entity.key not in self.world.gone for entity in own.about() + other.about())
        return living and all(own.slots[name] is other.slots[name] for name in shared)

    def _quote(self) -> Sentence | None:
        if not self.quotes:
            return None
        self.quotes -= 1
        words = {"quote": self._fresh(QUOTES[self.kind.topic]) or ""}
        self.seen_templates.add(words["quote"])
        living = [e for e in self.cast if e.type == "PER" and e.key not in self.world.gone]
        speaker = (
            pick(living, self.rng) if living and self.rng.random() < 0.75 else self._outsider()
        )
        is_introduced = speaker.key in self.writer.introduced
        options = [
            b
            for b in self._open([speaker], tuple(SAID_BY))
            if b.slots["P"] is speaker and self._alive(b)
        ]
        if options and (not is_introduced or self.rng.random() < 0.35):
            binding = pick(options, self.rng)
            self.told.add(id(binding))
            template = self.room.choose(SAID_BY[binding.frame])
            return self._write(template, binding.slots, (binding.frame,), 0.6, words=words)
        if not is_introduced:
            return None
        return self._write(self.room.choose(SAID), {"P": speaker}, (), 1.0, words=words)

    def _alive(self, binding: Binding) -> bool:
        return all(entity.key not in self.world.gone for entity in binding.about())

    def _outsider(self) -> Entity:
        speaker = self.room.anybody("PER", {entity.key for entity in self.cast})
        if len(self.cast) < 7:
            self.cast.append(speaker)
        return speaker

    def _bystanders(self) -> dict[str, Filler]:
        people = [e for e in self.cast if e.type == "PER" and e.key not in self.world.gone]
        firms = [e for e in self.cast if e.type == "ORG" and e.key not in self.world.gone]
        cast = {e.key for e in self.cast}
        while len(people) < 2:
            people.append(self.room.anybody("PER", cast | {e.key for e in people}))
        while len(firms) < 2:
            firms.append(self.room.anybody("ORG", cast | {e.key for e in firms}))
        rng = self.rng
        x, z = self.rng.permutation(len(people))[:2]
        o, n = self.rng.permutation(len(firms))[:2]
        place = self.world.places[str(pick(list(lx.COUNTRY_OF), self.rng))]
        if self.rng.random() < 0.5:
            place = self._scene()
        slots: dict[str, Filler] = {
            "X": people[x],
            "Z": people[z],
            "O": firms[o],
            "N": firms[n],
            "C": place,
        }
        companies = [e for e in firms if e.kind == "company"][:2]
        famous_companies = [
            e for e in self.room.famous if e.kind == "company" and e.key not in self.world.gone
        ]
        while len(companies) < 2:
            other = famous_companies[min(int(rng.geometric(0.15)), len(famous_companies)) - 1]
            companies += [other] if other not in companies else []
        return slots | {"F": companies[0], "M": companies[1]}

    def _together(self) -> Sentence | None:
        template = self._fresh(TOGETHER)
        return self._write(template, self._bystanders(), (), 0.0) if template else None

    def _denied(self) -> Sentence | None:
        living = [
            e
            for e in self.event.binding.about()
            if e.key not in self.world.gone and e.type != "GPE"
        ]
        if not living:
            return None
        slots = self._bystanders()
        entity = pick(living, self.rng)
        if slots["X"] is entity:
            slots["X"] = slots["Z"]
        frames = (
            _PERSONAL
            if entity.type == "PER"
            else _CORPORATE
            if entity.kind == "company"
            else _INSTITUTIONAL
        )
        frame = str(pick(frames, self.rng))
        template = self._fresh(DENIED[frame])
        if template is None:
            return None
        slots.update(self._foil(frame, entity))
        return self._write(template, slots, (frame,), 0.5, true=False)

    def _foil(self, frame: str, entity: Entity) -> dict[str, Filler]:
        """Slots for something that is not so."""
        rng, world = self.rng, self.world
        related = {e.key for b in world.bindings[entity.key] for e in b.about()}
        place = pick(
            [world.places[city] for city in lx.COUNTRY_OF if world.places[city].key not in related],
            rng,
        )
        slots: dict[str, Filler] = {
            "P": entity,
            "C": place,
            "G": place,
            "Q": self.room.anybody("PER", related),
        }
        strangers = [p for p in world.people if p.key not in related]
        namesakes = [p for p in strangers if {p.first, p.last} & {entity.first, entity.last}]
        if frame in ("parent", "sibling") and namesakes:
            slots["Q"] = pick(namesakes, rng)
        if entity.type == "ORG":
            pool = [
                e for e in world.organisations if e.key not in related and e.key not in world.gone
            ]
            kind = "alliance" if frame == "member" else "company"
            other = pick([e for e in pool if e.kind == kind], rng)
            slots |= {"O": other, "Q": entity} if frame == "member" else {"O": entity, "Q": other}
            return slots | {"D": written_date(rng, 2005, 2010), "Y": year(rng, 1960, 2008)}
        kind = "university" if frame == "school" else "company"
        other = pick(
            [
                e
                for e in world.organisations
                if e.kind == kind and e.key not in related | world.gone
            ],
            rng,
        )
        return slots | {"O": other, "U": other, "T": Value("TITLE", title_at(other, rng))}


_PERSONAL = (
    "job",
    "birth",
    "home",
    "spouse",
    "parent",
    "sibling",
    "school",
    "founded",
    "shares",
    "death",
    "former",
)
_INSTITUTIONAL = ("hq", "dissolved", "dated")
_CORPORATE = (*_INSTITUTIONAL, "subsidiary", "stake", "member")
