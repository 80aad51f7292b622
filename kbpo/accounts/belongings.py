"""What belongs to a row and goes with it: found from the models,
so that no new table is forgotten.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

from django.db.models import CASCADE, ManyToOneRel, Model, QuerySet


def relations(model: type[Model]) -> Iterator[ManyToOneRel]:
    """Yield every foreign key that leads to a table, those of tables between two others as well."""
    for relation in model._meta.get_fields(include_hidden=True):
        if isinstance(relation, ManyToOneRel):
            yield relation


def label(relation: ManyToOneRel) -> str:
    """Return table and column, such as ``accounts.Token.user``."""
    return f"{relation.related_model._meta.label}.{relation.field.name}"


def rows_of(relation: ManyToOneRel, row: Model) -> QuerySet[Any]:
    """Return the rows that name this one in this column."""
    return relation.related_model._base_manager.filter(**{relation.field.name: row})


def delete_belongings(row: Model, *, but: Container[str] = ()) -> None:
    """Delete what would be deleted with the row, except rows in the columns `but`. The row itself
    stays, and so does what only refers to it.
    """
    for relation in relations(type(row)):
        if relation.on_delete is CASCADE and label(relation) not in but:
            rows_of(relation, row).delete()
