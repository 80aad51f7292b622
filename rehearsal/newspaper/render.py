"""Sentences written out from templates, with the mentions and the facts that they contain."""

import re
from dataclasses import dataclass, field

import numpy as np

from rehearsal.newspaper import lexicon as lx
from rehearsal.newspaper.invent import Entity, Filler, Value

SLOT = re.compile(r"\{([^}]*)\}")
_AT = lx.SHARED_TITLES - {"board member", "vice president", "adviser"}
SMALL = ("three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True)
class Claim:
    """A predicate between two fillers as a sentence says it, or (not `true`) as it only seems to
    say it.
    """

    subject: Filler
    predicate: str
    object: Filler
    true: bool
    ease: float  # 1: plain wording, 0: roundabout


@dataclass
class Sentence:
    """A sentence with its mentions (half-open spans inside it) and its claims."""

    text: str = ""
    mentions: list[tuple[int, int, Filler]] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)


class Writer:
    """Writes the sentences of one document; remembers who has been introduced, and how."""

    def __init__(
        self, cast: list[Entity], focus: Entity, weekdays: list[str], rng: np.random.Generator
    ) -> None:
        self.focus, self.weekdays, self.rng = focus, weekdays, rng
        self.introduced: set[int] = set()
        self.acronyms: set[int] = set()
        self.surnames: dict[str, set[int]] = {}
        for entity in cast:
            self.expect(entity)

    def expect(self, entity: Entity) -> None:
        """Note that the entity occurs in this document: its surname may stand for two people."""
        if entity.type == "PER":
            self.surnames.setdefault(entity.last, set()).add(entity.key)

    def sentence(
        self, template: str, slots: dict[str, Filler], words: dict[str, str] | None = None
    ) -> Sentence:
        """The template with its slots filled."""
        out = Sentence()
        parts = SLOT.split(template)
        for number, part in enumerate(parts):
            if number % 2 == 0:
                out.text += self._literal(part, out)
            elif words and part in words:
                out.text += words[part]
            else:
                self._slot(part, slots, out, parts[number + 1])
        # Only now is it known which word comes first.
        start = 1 if out.text[:1] in "“" else 0
        out.text = out.text[:start] + out.text[start : start + 1].upper() + out.text[start + 1 :]
        return out

    def headline(self, template: str, slots: dict[str, Filler]) -> str:
        """The template in headline style: full names, no articles."""
        parts = SLOT.split(template)
        for number in range(1, len(parts), 2):
            name, _, word = parts[number].partition(".")
            name, _, style = name.partition(":")
            filler = slots[name]
            if word and isinstance(filler, Entity):
                parts[number] = lx.WORDS_BY_GENDER[word][0 if filler.male else 1]
            elif isinstance(filler, Entity):
                parts[number] = (
                    filler.last if style == "l" and filler.type == "PER" else filler.name
                )
            else:
                parts[number] = filler.text
        text = "".join(parts)
        return text[0].upper() + text[1:]

    def _literal(self, part: str, out: Sentence) -> str:
        if not out.mentions or out.mentions[-1][1] != len(out.text):
            return part
        last = out.text[out.mentions[-1][0] :]
        if part.startswith("’s") and last.endswith("s"):
            return "’" + part[2:]
        if re.search(r"\d, \d{4}$", last) and part.startswith(" "):
            return "," + part  # news style sets the year between commas
        if part.startswith(".") and last.endswith("."):
            return part[1:]
        return part

    def _slot(self, part: str, slots: dict[str, Filler], out: Sentence, following: str) -> None:
        if part in ("num", "few", "staff", "pct", "money"):
            out.text += self._number(part)
            return
        if part == "W":
            self._mention(
                Value("DATE", str(self.weekdays[int(self.rng.integers(len(self.weekdays)))])),
                None,
                out,
            )
            return
        head, _, word = part.partition(".")
        if word:
            person = slots[head]
            assert isinstance(person, Entity)
            out.text += lx.WORDS_BY_GENDER[word][0 if person.male else 1]
            return
        name, _, style = part.partition(":")
        if name in ("the", "on", "of"):
            name, style = style, name
        filler = slots[name]
        if isinstance(filler, Value):
            self._value(filler, style, out)
        elif style == "the":
            out.text += "the " if filler.article else ""
        else:
            if style == "of":
                title = slots["T"]
                works_at = (
                    isinstance(title, Value) and title.text in _AT and filler.kind != "ministry"
                )
                out.text += "at " if works_at or filler.kind == "university" else "of "
            self._entity(filler, style, out, slots, following)

    def _value(self, value: Value, style: str, out: Sentence) -> None:
        if style == "on":
            out.text += "on " if "," in value.text else "in "
        shared = value.text in lx.SHARED_TITLES
        if style == "a" or (style in ("b", "d") and shared):
            out.text += "an " if value.text[0] in "aeiou" else "a "
        elif style == "d":
            out.text += "the "
        self._mention(value, None, out)

    def _entity(
        self, entity: Entity, style: str, out: Sentence, slots: dict[str, Filler], following: str
    ) -> None:
        self.expect(entity)
        new = entity.key not in self.introduced
        self.introduced.add(entity.key)
        beside = {filler.key for filler in slots.values() if isinstance(filler, Entity)}
        whole = new or (style == "f" and self._doubtful(entity))
        text = entity.name if whole else self._later(entity, beside)
        if style == "l" and entity.shorts:
            text = entity.shorts[0]
        if (
            style != "n"
            and entity.article
            and (entity.type != "GPE" or text in lx.ARTICLED_COUNTRIES)
        ):
            out.text += "the "
        self._mention(entity, text, out)
        if (
            new
            and entity.acronym
            and style != "n"
            and not following.startswith("’s")
            and self.rng.random() < 0.6
        ):
            self.acronyms.add(entity.key)
            out.text += " ("
            self._mention(entity, entity.acronym, out)
            out.text += ")"

    def _doubtful(self, entity: Entity) -> bool:
        return entity.type == "PER" and len(self.surnames[entity.last]) > 1

    def _later(self, entity: Entity, beside: set[int]) -> str:
        chance = self.rng.random()
        if entity.type == "PER":
            if not self._doubtful(entity):
                return entity.last if chance < 0.88 else entity.name
            if (self.surnames[entity.last] & beside) - {entity.key}:
                return entity.name
            if entity is self.focus:
                return entity.last if chance < 0.7 else entity.name
            return entity.first if chance < 0.3 and self.focus.last == entity.last else entity.name
        if entity.key in self.acronyms:
            return entity.acronym if chance < 0.75 else entity.name
        if entity.shorts and chance < 0.6:
            return entity.shorts[int(self.rng.integers(len(entity.shorts)))]
        return entity.name

    def _mention(self, filler: Filler, text: str | None, out: Sentence) -> None:
        if filler.type == "GPE" and re.search(r"\b[Aa] $", out.text) and str(text)[0] in "AEIO":
            out.text = out.text[:-1] + "n "
        begin = len(out.text)
        out.text += filler.text if isinstance(filler, Value) else str(text)
        out.mentions.append((begin, len(out.text), filler))

    def _number(self, part: str) -> str:
        rng = self.rng
        if part == "few":
            return SMALL[int(rng.integers(len(SMALL)))]
        if part == "num":
            return str(rng.integers(11, 90))
        if part == "staff":
            small = rng.random() < 0.7
            return (
                str(10 * rng.integers(4, 95))
                if small
                else f"{rng.integers(1, 20)},{rng.integers(1, 10)}00"
            )
        if part == "pct":
            return (
                str(rng.integers(4, 20))
                if rng.random() < 0.5
                else f"{rng.integers(2, 20)}.{rng.integers(1, 10)}"
            )
        return f"${rng.integers(2, 99)}.{rng.integers(1, 10)} million"
