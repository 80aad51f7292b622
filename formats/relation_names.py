"""What every page calls a relation: the words of the sentence that people judge."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

ENDS = ("{subject}", "{object}")


def relation_names(predicates: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return predicate -> its unique name, for the predicates of a schema; equal words are
    distinguished by the argument types, otherwise by the label, otherwise by the predicate itself.
    """
    alike: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    names: dict[str, str] = {}
    for row in predicates:
        names[row["name"]] = _words(row)
        alike[names[row["name"]]].append(row)
    for words, rows in alike.items():
        if len(rows) > 1:
            told = next(filter(_differ, ([tell(row) for row in rows] for tell in _TELLING)))
            names |= {
                row["name"]: f"{words} ({more})" for row, more in zip(rows, told, strict=True)
            }
    return names


def _words(row: Mapping[str, Any]) -> str:
    """“owns shares in” of “{subject} owns shares in {object}”; with dots for ends that do not frame
    it, and with the ends by name where the object comes first.
    """
    template = str(row.get("template") or "")
    subject, object_ = map(template.find, ENDS)
    if subject < 0 or object_ < 0:
        return _label(row)
    if object_ < subject:
        return _fill_ends(template, "subject", "object")
    if template.startswith(ENDS[0]) and template.rstrip(" .").endswith(ENDS[1]):
        return _fill_ends(template, "", "").strip(" .,:") or _label(row)
    return _fill_ends(template, "…", "…")


def _fill_ends(template: str, subject: str, object_: str) -> str:
    return template.replace(ENDS[0], subject).replace(ENDS[1], object_)


def _label(row: Mapping[str, Any]) -> str:
    return str(row.get("label") or row["name"])


def _subjects(row: Mapping[str, Any]) -> str:
    return "/".join(dict.fromkeys(subject for subject, _ in row.get("types") or ()))


def _pairs(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{subject} → {object_}" for subject, object_ in row.get("types") or ())


def _predicate(row: Mapping[str, Any]) -> str:
    return str(row["name"])


_TELLING: tuple[Callable[[Mapping[str, Any]], str], ...] = (_subjects, _pairs, _label, _predicate)


def _differ(told: list[str]) -> bool:
    return all(told) and len(set(told)) == len(told)
