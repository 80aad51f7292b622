"""The schema of a corpus or track: entity types, predicates, and names of predicates that are
reversed, mapped or ignored.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from unicodedata import normalize

from formats.messages import FormatError, quote
from formats.yaml_text import BadYaml, read_yaml

SHIPPED = Path(__file__).parent / "schemas"
_STRING_VALUED = {
    "DATE": "date",
    "TIME": "date",
    "TITLE": "string",
    "NUM": "number",
    "NUMBER": "number",
    "STRING": "string",
    "URL": "string",
}
NO_RELATION = "no_relation"

EXPECTED: Mapping[str, str] = {
    "entity_types": 'a list of objects as {"name": "PER"}',
    "predicates": 'a list of objects as {"name": "knows", "types": [["PER", "PER"]]}',
    "turned": 'an object as {"known_by": "knows"}',
    "mapped": 'an object as {"knows_well": "knows"}',
    "ignored": 'a list of names as ["age"]',
    "exclusive": 'a list of groups as [["knows", "fears"]]',
}
"""Key of a schema -> a description of its value"""

BESIDES = ("name", "licence")
"""Keys of a schema whose values are not checked"""
SHOWN = 60
"""Greatest number of characters of a wrong value in a sentence"""
Argument = TypeVar("Argument")
Entry = TypeVar("Entry")
Named = TypeVar("Named", "EntityType", "Predicate")


@dataclass(frozen=True, slots=True)
class EntityType:
    """A type of mention: linkable (an entity of the world) or string-valued (a date, a title, a
    number).
    """

    name: str
    description: str = ""
    value: str | None = None
    """The kind of a string-valued type: date, number or string; None for entities."""
    example: str = ""
    """A few words of text with a mention of this type in [square brackets]."""
    cues: tuple[str, ...] = ()
    """Lowercase words with which mentions of this type often begin, for types that capital letters
    do not reveal."""

    @property
    def linkable(self) -> bool:
        """Return whether a mention of this type refers to an entity that a knowledge base may
        have.
        """
        return self.value is None


@dataclass(frozen=True, slots=True)
class Predicate:
    """A relation that may hold between two mentions."""

    name: str
    label: str
    template: str
    types: tuple[tuple[str, str], ...]
    inverse: str | None = None
    inverse_by_object_type: Mapping[str, str] = field(default_factory=dict)
    frequency: int = 0
    wikidata: str | None = None
    inverse_in_gold: float | None = None
    """Share of its instances whose inverse is in the gold standard too; None if unknown"""
    definition: str = ""
    """When the relation holds, in a sentence for annotators."""
    example: str = ""
    """A few words of text that state the relation."""
    counter_example: str = ""
    """A few words of text that seem to state the relation, but do not."""

    @property
    def symmetric(self) -> bool:
        """Return whether the predicate is its own inverse."""
        return self.inverse == self.name

    def sentence(self, subject: str, object_: str) -> str:
        """Return the sentence that annotators read: the template with its two arguments."""
        return self.template.replace("{subject}", subject).replace("{object}", object_)


KEYS = {
    "entity_types": frozenset(part.name for part in fields(EntityType)),
    "predicates": frozenset(part.name for part in fields(Predicate)),
}
"""The keys of an entry"""


@dataclass(frozen=True)
class Schema:
    """The types and predicates, by descending frequency, and how other names of predicates are
    read.
    """

    name: str
    entity_types: Mapping[str, EntityType]
    predicates: Mapping[str, Predicate]
    turned: Mapping[str, str] = field(default_factory=dict)
    """Names of inverses that a submission may use -> the predicate to which each is reversed."""
    mapped: Mapping[str, str] = field(default_factory=dict)
    """Finer names that a submission may use -> the predicate into which each is merged."""
    ignored: frozenset[str] = frozenset()
    """Predicates that are known, but not evaluated."""
    exclusive: tuple[frozenset[str], ...] = ()
    """Groups of predicates of which at most one holds for an ordered pair."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """Sentences about ignored parts of the schema's file, each with its place."""

    @cached_property
    def types_in_predicates(self) -> list[EntityType]:
        """Return the types that some predicate uses, in schema order. Mentions of other types may
        be in a text, but no question is about them.
        """
        named = {name for p in self.predicates.values() for pair in p.types for name in pair}
        return [
            entity_type_
            for entity_type_ in self.entity_types.values()
            if entity_type_.name in named
        ]

    def knows_predicate(self, predicate: str) -> bool:
        """Return whether a submission may contain the name, evaluated or not."""
        return predicate in self._reading_by_name or predicate in self.ignored

    def canonical_reading(self, predicate: str) -> tuple[Predicate, bool] | None:
        """Return the canonical predicate of a name, and whether its arguments are reversed; None if
        it is not evaluated.
        """
        return self._reading_by_name.get(predicate)

    def canonical_statement(
        self, predicate: str, subject: Argument, object_: Argument
    ) -> tuple[str, Argument, Argument] | None:
        """Return the canonical predicate with its subject and object in that order; None if it is
        unknown or ignored.
        """
        reading = self._reading_by_name.get(predicate)
        if reading is None:
            return None
        canonical, turn = reading
        return (canonical.name, object_, subject) if turn else (canonical.name, subject, object_)

    def is_allowed(self, predicate: str, subject_type: str, object_type: str) -> bool:
        """Return whether the canonical predicate may hold between mentions of these types."""
        return (predicate, subject_type, object_type) in self._allowed_triples

    def object_types(self, predicate: str, subject_type: str | None = None) -> tuple[str, ...]:
        """Return the types that the object may have, most frequent first; over all subjects if the
        subject's type is None.
        """
        pairs = self.predicates[predicate].types
        return tuple(dict.fromkeys(o for s, o in pairs if subject_type in (None, s)))

    def subject_types(self, predicate: str, object_type: str | None = None) -> tuple[str, ...]:
        """Return the types that the subject may have, most frequent first; over all objects if the
        object's type is None.
        """
        pairs = self.predicates[predicate].types
        return tuple(dict.fromkeys(s for s, o in pairs if object_type in (None, o)))

    def predicates_between(
        self, subject_types: Iterable[str], object_types: Iterable[str]
    ) -> list[Predicate]:
        """Return the predicates allowed from any of these subject types to any of these object
        types, in schema order.
        """
        pairs = {(s, o) for s in subject_types for o in object_types}
        return [
            predicate
            for predicate in self.predicates.values()
            if not pairs.isdisjoint(predicate.types)
        ]

    def inverse(self, predicate: str, object_type: str) -> str | None:
        """Return the equivalent predicate from object to subject, if the schema has one."""
        of_predicate = self.predicates[predicate]
        inverse = of_predicate.inverse_by_object_type.get(object_type, of_predicate.inverse)
        return inverse if inverse in self.predicates else None

    def equivalent_inverse(self, predicate: str, object_type: str) -> str | None:
        """Return the inverse if it holds whenever the predicate does; None where the gold standard
        annotates both separately.
        """
        name = self.inverse(predicate, object_type)
        if name is None:
            return None
        for direction in (predicate, name):
            if self.predicates[direction].inverse_in_gold not in (None, 1.0):
                return None
        return name

    def linkable(self, entity_type: str) -> bool:
        """Return whether mentions of this type refer to entities; False for dates, titles, numbers
        and unknown types.
        """
        known = self.entity_types.get(entity_type)
        return known is not None and known.linkable

    @cached_property
    def _reading_by_name(self) -> dict[str, tuple[Predicate, bool]]:
        readings: dict[str, tuple[Predicate, bool]] = {}
        for name, target in self.turned.items():
            readings[name] = self.predicates[target], True
        for name, target in self.mapped.items():
            readings[name] = self.predicates[target], False
        for name, predicate in self.predicates.items():
            readings[name] = predicate, False
        return readings

    @cached_property
    def _allowed_triples(self) -> frozenset[tuple[str, str, str]]:
        allowed = set()
        for predicate in self.predicates.values():
            for subject_type, object_type in predicate.types:
                allowed.add((predicate.name, subject_type, object_type))
        return frozenset(allowed)

    @cached_property
    def groups(self) -> dict[str, int]:
        """Return predicate -> number of its exclusive group, for predicates in a group."""
        return {name: number for number, group in enumerate(self.exclusive) for name in group}

    def as_dict(self) -> dict[str, Any]:
        """Return the schema as `load_schema` reads it, to be stored as JSON."""
        return {
            "name": self.name,
            "entity_types": [
                {
                    "name": t.name,
                    "description": t.description,
                    "value": t.value,
                    "example": t.example,
                    "cues": list(t.cues),
                }
                for t in self.entity_types.values()
            ],
            "predicates": [_predicate_as_dict(p) for p in self.predicates.values()],
            "turned": dict(self.turned),
            "mapped": dict(self.mapped),
            "ignored": sorted(self.ignored),
            "exclusive": [sorted(group) for group in self.exclusive],
        }


def _predicate_as_dict(predicate: Predicate) -> dict[str, Any]:
    return {
        "name": predicate.name,
        "label": predicate.label,
        "template": predicate.template,
        "types": [list(pair) for pair in predicate.types],
        "inverse": predicate.inverse,
        "inverse_by_object_type": dict(predicate.inverse_by_object_type),
        "frequency": predicate.frequency,
        "wikidata": predicate.wikidata,
        "inverse_in_gold": predicate.inverse_in_gold,
        "definition": predicate.definition,
        "example": predicate.example,
        "counter_example": predicate.counter_example,
    }


def shipped_schema(name: str) -> Schema:
    """Return one of the schemas that ship with the package: `tac_kbp` or `docred`."""
    return load_schema(SHIPPED / f"{name}.json")


WORDS = {
    "entity_types": ("description", "example"),
    "predicates": ("label", "template", "definition", "example", "counter_example"),
}
"""The texts of a schema for people, which can change while its types and predicates do not"""


def words_as_yaml(schema: Mapping[str, Any]) -> str:
    """Return the texts of a stored schema as YAML, by the names of its types and predicates."""
    import yaml

    words: dict[str, dict[str, dict[str, Any]]] = {}
    for part, keys in WORDS.items():
        words[part] = {}
        for row in schema[part]:
            words[part][row["name"]] = {key: row.get(key) or "" for key in keys}
    return str(yaml.safe_dump(words, allow_unicode=True, sort_keys=False, width=10**6))


def replace_words(
    schema: Mapping[str, Any], text: str, *, displayed_text: str = ""
) -> dict[str, Any]:
    """Return a stored schema with other texts, in the format of `words_as_yaml`. Texts that are
    missing, or unchanged from the text that was `displayed_text`, are kept. Raises FormatError with
    the problem.
    """
    parts: dict[str, dict[str, dict[str, Any]]] = {}
    for part in WORDS:
        parts[part] = {row["name"]: dict(row) for row in schema[part]}
    before = _parse_words(displayed_text, parts)
    for (part, name, key), word in _parse_words(text, parts).items():
        if word != before.get((part, name, key)):
            parts[part][name][key] = word
    listed = {part: list(by_name.values()) for part, by_name in parts.items()}
    for predicate in listed["predicates"]:
        if any(end not in predicate["template"] for end in ("{subject}", "{object}")):
            raise FormatError(
                f"The template of {predicate['name']} has to name {{subject}} and {{object}}."
            )
    return load_schema({**schema, **listed}).as_dict()


def _parse_words(
    text: str, parts: Mapping[str, Mapping[str, Any]]
) -> dict[tuple[str, str, str], str]:
    """Return (part, name, key) -> text from a YAML text. Raises FormatError for a part, name or key
    that `parts` does not have, and for a value that is not text.
    """
    named_parts = _parse_yaml(text, "words") or {}
    words: dict[tuple[str, str, str], str] = {}
    _refuse_unknown(named_parts, parts, "The words have")
    for part, named in named_parts.items():
        _refuse_unknown(named, parts[part], f"The schema’s {part} have")
        for name, by_key in named.items():
            _refuse_unknown(by_key, WORDS[part], f"{name} has")
            for key, word in by_key.items():
                if isinstance(word, (bool, list, dict)):
                    raise FormatError(f"The {key} of {name} is not words. Put it in quotes.")
                words[part, name, key] = str(word or "")
    return words


def _refuse_unknown(mapping: Any, names: Iterable[str], whose: str) -> None:
    """Raise FormatError unless this is a mapping whose keys are among these names."""
    if not isinstance(mapping, Mapping):
        raise FormatError(f"{whose} a name with a colon and words beneath it.")
    for name in mapping:
        if name not in names:
            raise FormatError(f"{whose} no {quote(str(name))}. Only words can change here.")


def load_schema(source: str | Path | Mapping[str, Any]) -> Schema:
    """Return the schema in a JSON or YAML file, or in a mapping. Raises FormatError with the reason
    if it is not a schema.
    """
    if isinstance(source, Mapping):
        return _build_schema(source, str(source.get("name", "schema")))
    path = Path(source)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:  # no text, or a name that no file has
        raise FormatError(f"The schema {path.name!r} cannot be read: {error}.") from error
    data = (
        _parse_yaml(text, path.name)
        if path.suffix in (".yaml", ".yml")
        else _parse_json(text, path.name)
    )
    if not isinstance(data, Mapping):
        raise FormatError(
            f"The schema {path.name} is not an object with entity_types and predicates."
        )
    return _build_schema(data, str(data.get("name", path.stem)))


def _parse_json(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"The schema {name} is not JSON: {error}.") from error


def _parse_yaml(text: str, name: str) -> Any:
    try:
        node = read_yaml(text)
    except ImportError as error:
        raise FormatError(
            "A schema in YAML needs the package PyYAML; JSON works without it."
        ) from error
    except BadYaml as error:
        where = f", line {error.line}" if error.line else ""
        raise FormatError(f"The schema {name} cannot be read{where}: {error}") from error
    return None if node is None else node.plain()


def _build_schema(data: Mapping[str, Any], name: str) -> Schema:
    try:
        types = _by_name("entity_types", _parse_entries(data, "entity_types", _parse_entity_type))
        predicates = _by_name("predicates", _parse_entries(data, "predicates", _parse_predicate))
        schema = Schema(
            name=name,
            entity_types=types,
            predicates=predicates,
            turned=_string_mapping(data, "turned"),
            mapped=_string_mapping(data, "mapped"),
            ignored=frozenset(_parse_entries(data, "ignored", _check_name)),
            exclusive=tuple(
                frozenset(group) for group in _parse_entries(data, "exclusive", _check_names)
            ),
            notes=tuple(_notes_on_unknown_keys(data)),
        )
        _check_references(schema)
        text = json.dumps(schema.as_dict(), ensure_ascii=False)
        if "\\u0000" in text or any("\ud800" <= char <= "\udfff" for char in text):
            raise FormatError("The schema has characters that no text has (a NUL, say).")
    except FormatError:
        raise
    except (TypeError, ValueError) as error:
        raise FormatError("The schema has a value of the wrong kind.") from error
    except RecursionError as error:
        raise FormatError("The schema is nested too deeply.") from error
    return schema


def _by_name(key: str, entries: list[Named]) -> dict[str, Named]:
    """Return name -> entry for a list of the schema. Raises FormatError with the places of a
    duplicate name.
    """
    places: dict[str, list[int]] = defaultdict(list)
    for place, entry in enumerate(entries, 1):
        places[entry.name].append(place)
    for name, where in places.items():
        if len(where) > 1:
            raise FormatError(
                f"The schema names {quote(name)} twice: in the entries {where[0]} and {where[1]}"
                f" of {key}."
            )
    return {entry.name: entry for entry in entries}


def _notes_on_unknown_keys(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each unknown key of a schema, with the first place of the key."""
    for key in data:
        if key not in EXPECTED and key not in BESIDES:
            yield f"The key {quote(str(key))} of the schema is not known. It is ignored."
    for part, known in KEYS.items():
        seen = set(known)
        for place, row in enumerate(data[part], 1):
            for key in row:
                if key not in seen:
                    seen.add(key)
                    yield (
                        f"The key {quote(str(key))} in the entry {place} of {part} in the schema"
                        f" ({row['name']}) is not known. It is ignored, here and further on."
                    )


def _parse_entries(data: Mapping[str, Any], key: str, read: Callable[[Any], Entry]) -> list[Entry]:
    """Return the parsed entries of a list of the schema. Raises FormatError with the place of an
    entry that cannot be parsed, and the expected form.
    """
    if key in ("entity_types", "predicates") and key not in data:
        raise FormatError(f"The schema lacks the key {key!r}: {EXPECTED[key]}.")
    rows = data.get(key) or ()
    if not isinstance(rows, list | tuple):
        raise _wrong_kind(key, rows, key)
    entries = []
    for place, row in enumerate(rows, 1):
        try:
            entries.append(read(row))
        except FormatError:
            raise
        except KeyError as lacks:
            where = f"The entry {place} of {key} in the schema"
            raise FormatError(f"{where} lacks the key {lacks}: {EXPECTED[key]}.") from lacks
        except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise _wrong_kind(f"entry {place} of {key}", row, key) from error
    return entries


def _wrong_kind(location: str, value: Any, key: str) -> FormatError:
    shown = json.dumps(value, default=str, ensure_ascii=False)
    shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"
    sentence = f"The schema has a value of the wrong kind: {location} is {shown}."
    return FormatError(f"{sentence} Expected is {EXPECTED[key]}.")


def _string_mapping(data: Mapping[str, Any], key: str) -> dict[str, str]:
    names = data.get(key) or {}
    if not isinstance(names, Mapping):
        raise _wrong_kind(key, names, key)
    return {str(name): str(stands_for) for name, stands_for in names.items()}


def _check_name(value: Any) -> str:
    """Return a value that must be a name. Raises TypeError if it is not a string."""
    if value is None or isinstance(value, list | tuple | Mapping):
        raise TypeError
    return str(value)


def _check_names(value: Any) -> list[str]:
    """Return a value that must be a list of names. Raises TypeError if it is not."""
    if not isinstance(value, list | tuple):
        raise TypeError
    return [_check_name(name) for name in value]


def _check_type_pair(value: Any) -> tuple[str, str]:
    """Return the types of a subject and an object from a list of the two, which may end with a
    count of relations. Raises TypeError or ValueError if they are not a pair.
    """
    if not isinstance(value, list | tuple):
        raise TypeError
    subject, object_, *counted = value
    if len(counted) > 1 or not all(isinstance(count, int) for count in counted):
        raise ValueError
    return _check_name(subject), _check_name(object_)


def _parse_entity_type(data: Mapping[str, Any]) -> EntityType:
    name = normalize("NFC", str(data["name"]))
    value = data["value"] if "value" in data else _STRING_VALUED.get(name)
    if value not in (None, "date", "number", "string"):
        raise FormatError(
            f"The entity type {name} has the value {value!r}; it may be date, number,"
            " string or null."
        )
    return EntityType(
        name,
        str(data.get("description") or ""),
        value,
        str(data.get("example") or ""),
        tuple(str(cue).lower() for cue in data.get("cues") or ()),
    )


def _parse_predicate(data: Mapping[str, Any]) -> Predicate:
    name = normalize("NFC", str(data["name"]))
    label = str(data.get("label") or name.partition(":")[2].replace("_", " ") or name)
    return Predicate(
        name=name,
        label=label,
        template=str(data.get("template") or f"{{subject}}: {label}: {{object}}"),
        types=tuple(map(_check_type_pair, data["types"])),
        inverse=None if data.get("inverse") is None else _check_name(data["inverse"]),
        inverse_by_object_type=dict(data.get("inverse_by_object_type") or {}),
        frequency=int(data.get("frequency") or 0),
        wikidata=data.get("wikidata"),
        inverse_in_gold=(
            None if data.get("inverse_in_gold") is None else float(data["inverse_in_gold"])
        ),
        definition=str(data.get("definition") or ""),
        example=str(data.get("example") or ""),
        counter_example=str(data.get("counter_example") or ""),
    )


def _check_references(schema: Schema) -> None:
    """Raise FormatError if a predicate names a type or a predicate that the schema lacks."""
    if not schema.entity_types or not schema.predicates:
        raise FormatError("The schema has no entity types or no predicates.")
    for predicate in schema.predicates.values():
        _check_predicate(schema, predicate)
    for name, target in (*schema.turned.items(), *schema.mapped.items()):
        if target not in schema.predicates:
            raise FormatError(f"{name} stands for the unknown predicate {quote(str(target))}.")
    unknown = {name for group in schema.exclusive for name in group} - set(schema.predicates)
    if unknown:
        raise FormatError(
            f"A group of exclusive predicates names the unknown {', '.join(sorted(unknown))}."
        )


def _check_predicate(schema: Schema, predicate: Predicate) -> None:
    for pair in predicate.types:
        for name in pair:
            if name not in schema.entity_types:
                raise FormatError(
                    f"The predicate {predicate.name} names the unknown type {quote(name)}."
                )
    if predicate.inverse is not None and predicate.inverse not in schema.predicates:
        raise FormatError(
            f"The predicate {predicate.name} has the unknown inverse {quote(predicate.inverse)}."
        )
    if "{subject}" not in predicate.template or "{object}" not in predicate.template:
        raise FormatError(f"The template of {predicate.name} lacks {{subject}} or {{object}}.")
