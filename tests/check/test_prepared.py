"""Statements by hand: a session learns each once, whatever becomes of the transaction."""

from __future__ import annotations

import pytest
from django.db import connection

from annotation.models import Question
from annotation.workers.models import TutorialRun
from kbpo.accounts.models import User
from kbpo.prepared import Columns, Prepared

pytestmark = pytest.mark.django_db

USER = Columns(User, "u")
NAMED = Prepared(
    f"SELECT u.id = ANY(%(some)s), {USER.sql} FROM accounts_user u WHERE u.id = %(pk)s"
)
RENAME = Prepared("UPDATE accounts_user SET first_name = %(name)s WHERE first_name <> %(name)s")


def known() -> list[str]:
    """The statements of ours that this session knows."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM pg_prepared_statements WHERE name = %s", [NAMED.name])
        return [name for (name,) in cursor.fetchall()]


def test_a_row_by_hand_is_the_row_that_django_reads() -> None:
    made = User.objects.create_user("ada", email="ada@example.org", is_annotator=True)
    found = NAMED.fetch_first(some=[made.pk, 7], pk=made.pk)
    assert found is not None
    is_one, *of_user = found
    assert is_one is True
    read = USER.row(of_user)
    assert read == made
    assert vars(read).keys() == vars(User.objects.get(pk=made.pk)).keys()
    for field in User._meta.concrete_fields:
        assert getattr(read, field.attname) == getattr(made, field.attname)
    read.first_name = "Ada"
    read.save()
    assert User.objects.get(pk=made.pk).first_name == "Ada"


@pytest.mark.parametrize("model", [Question, TutorialRun])
def test_a_value_of_json_is_read_as_django_reads_it(model: type[Question | TutorialRun]) -> None:
    columns = Columns(model, "t")
    values: list[object] = [None] * columns.n
    for at, field in enumerate(model._meta.concrete_fields):
        if field.get_internal_type() == "JSONField":
            values[at] = '{"a": ["é"], "n": null}'
    read = columns.row(values)
    kinds = [one for one in model._meta.concrete_fields if one.get_internal_type() == "JSONField"]
    assert kinds and all(getattr(read, one.attname) == {"a": ["é"], "n": None} for one in kinds)
