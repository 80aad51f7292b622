"""Copies of all that stands in the database: a world in which everything has happened
several times.

Copies refer to copies: the answers of a copied question are copies of its answers. What is unique
by itself (a name, a token) gets a suffix; what stands once for something that is not copied (the
budget of a track) is not copied either.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any
from uuid import UUID, uuid5

from django.apps import apps
from django.db import connection, models

from kbpo.money.models import KINDS

OURS = re.compile(r"kbpo\.|annotation\b")
NAMED = frozenset(
    [
        "code",
        "digest",
        "email",
        "external_id",
        "handle",
        "idempotency_key",
        "key",
        "name",
        "number",
        "prefix",
        "slug",
        "token",
        "url",
        "username",
    ]
)
"""What may be different in a copy, where a constraint says that it must."""
FREE = frozenset({("submissions.Submission", "name")})
"""What a constraint of an expression says of a field, besides."""
PURPOSES = {
    "submission": "submissions.Submission",
    "documents": "annotation.DocumentOrder",
    "bonus": "annotation.Bonus",
}
"""Kind of what is paid for -> whose rows these are; of the others a track has one."""
Rows = dict[type[models.Model], list[dict[str, Any]]]


def ours() -> list[type[models.Model]]:
    """All our tables, those of many-to-many relations included."""
    return [
        model
        for model in apps.get_models(include_auto_created=True)
        if OURS.match(model.__module__) and model._meta.managed and not model._meta.proxy
    ]


def rows() -> Rows:
    """What stands in them."""
    return {model: list(model._base_manager.values()) for model in ours()}


def copy(world: Rows, mark: int, but: Collection[str] = ()) -> set[str]:
    """The tables whose rows were copied, all but those named;
    `mark` makes the copy unlike others.
    """
    copied = _copied(but)
    keys = {model: _keys(model, world[model]) for model in copied if not _is_told(model)}
    for model in copied - set(keys):  # its key is that of another table's row
        target = model._meta.pk.related_model
        keys[model] = keys[target]  # type: ignore[index]
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        for model in copied:
            new = [model(**_copy(model, row, keys, mark)) for row in world[model]]
            model._base_manager.bulk_create(new)
        cursor.execute("SET session_replication_role = origin")
    return {model._meta.label for model in copied if world[model]}


def _is_told(model: type[models.Model]) -> bool:
    return bool(model._meta.pk and model._meta.pk.is_relation)


def _copied(but: Collection[str]) -> set[type[models.Model]]:
    """The tables of which nothing says that a row must stay the only one."""
    found = {model for model in ours() if model._meta.label not in but}
    while alone := {m for m in found if not all(_differs(m, u, found) for u in _uniques(m))}:
        found -= alone
    return found


def _uniques(model: type[models.Model]) -> Iterator[tuple[str, ...]]:
    meta = model._meta
    yield from ((one.name,) for one in meta.concrete_fields if one.unique and not _serial(one))
    yield from (tuple(one) for one in meta.unique_together)
    for constraint in meta.constraints:
        if isinstance(constraint, models.UniqueConstraint) and constraint.fields:
            nulls = constraint.nulls_distinct is not False
            yield tuple(
                name for name in constraint.fields if nulls or not meta.get_field(name).null
            )


def _serial(field: models.Field[Any, Any]) -> bool:
    return isinstance(field, models.AutoField)


def _differs(
    model: type[models.Model], unique: tuple[str, ...], copied: set[type[models.Model]]
) -> bool:
    fields = [model._meta.get_field(name) for name in unique]
    return any(one.related_model in copied or one.name in NAMED for one in fields)


def _keys(model: type[models.Model], some: list[dict[str, Any]]) -> dict[Any, Any]:
    pk = model._meta.pk
    assert pk is not None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence(%s, %s)) FROM generate_series(1, %s)",
            [f'"{model._meta.db_table}"', pk.column, len(some)],
        )
        return {row[pk.attname]: new for row, (new,) in zip(some, cursor.fetchall(), strict=True)}


def _copy(
    model: type[models.Model],
    row: dict[str, Any],
    keys: dict[type[models.Model], dict[Any, Any]],
    mark: int,
) -> dict[str, Any]:
    new = dict(row)
    must = {name for unique in _uniques(model) for name in _to_change(model, unique, keys)}
    must |= {name for label, name in FREE if label == model._meta.label}
    for field in model._meta.concrete_fields:
        value = row[field.attname]
        if value is None:
            continue
        if field.is_relation:
            new[field.attname] = keys.get(field.related_model, {}).get(value, value)  # type: ignore[arg-type]
        elif field.primary_key:
            new[field.attname] = keys[model][value]
        elif field.name in must:
            new[field.attname] = _other(value, mark, field.max_length)
    for kind, number in (("payer_kind", "payer_number"), ("purpose_kind", "purpose_number")):
        if new.get(kind) in KINDS and new[kind] in PURPOSES:
            of = keys.get(apps.get_model(PURPOSES[new[kind]]), {})
            new[number] = of.get(new[number], new[number])
    return new


def _to_change(
    model: type[models.Model], unique: tuple[str, ...], keys: dict[type[models.Model], Any]
) -> list[str]:
    """The fields whose text has to be another one, lest two rows be alike."""
    fields = [model._meta.get_field(name) for name in unique]
    if any(one.related_model in keys for one in fields):
        return []
    return [one.name for one in fields if one.name in NAMED][:1]


def _other(value: Any, mark: int, most: int | None) -> Any:
    if isinstance(value, UUID):
        return uuid5(value, str(mark))
    if isinstance(value, int):
        return value + 100 * mark
    return f"{value[: most - 5] if most else value}-{mark}"
