"""The migrations of each application are in one row, and make the tables that the models describe.

Each begins with a baseline that stands for all that was migrated before anything was deployed.
"""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState

from kbpo.accounts.models import Preference, User


@pytest.fixture(scope="module")
def loader() -> MigrationLoader:
    return MigrationLoader(None)


def test_no_two_migrations_come_last(loader: MigrationLoader) -> None:
    assert loader.detect_conflicts() == {}


def test_no_model_waits_for_a_migration(loader: MigrationLoader) -> None:
    written, described = loader.project_state(), ProjectState.from_apps(apps)
    changes = MigrationAutodetector(written, described).changes(graph=loader.graph)
    assert {app: [str(each.operations) for each in some] for app, some in changes.items()} == {}


@pytest.mark.django_db
def test_an_installation_from_before_the_baselines_has_nothing_to_migrate(
    loader: MigrationLoader,
) -> None:
    recorder = MigrationRecorder(connection)
    baselines = {key: row.replaces for key, row in loader.disk_migrations.items() if row.replaces}
    assert len(baselines) == 14
    for (app, name), replaced in baselines.items():
        recorder.record_unapplied(app, name)
        for before in replaced:
            recorder.record_applied(*before)
    executor = MigrationExecutor(connection)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []
    executor.loader.check_consistent_history(connection)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "left_out", ["0001_initial", "0006_list_predictions", "0002_look_predictions_up_by_instance"]
)
def test_an_installation_between_the_old_migrations_is_told_to_end_them_first(
    left_out: str,
) -> None:
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied("submissions", left_out)
    had = recorder.applied_migrations().keys()
    with pytest.raises(CommandError) as refused:
        call_command("migrate", verbosity=0)
    assert f"part of what submissions.0001_baseline stands for, but not {left_out}" in str(
        refused.value
    )
    assert "commit b0f466a" in str(refused.value)
    assert recorder.applied_migrations().keys() == had


@pytest.mark.django_db
def test_who_wants_no_mail_of_scores_gets_none_of_releases() -> None:
    """They were told of as scores before they had an event of their own."""
    for name, event, by_mail in (
        ("ada", "scored", False),
        ("bo", "scored", False),
        ("bo", "release", True),
        ("cy", "refused", False),
    ):
        user, _ = User.objects.get_or_create(username=name)
        Preference.objects.create(user=user, event=event, by_mail=by_mail)
    copy = import_module("kbpo.accounts.migrations.0005_be_told_of_releases_as_of_scores").COPY
    with connection.cursor() as cursor:
        cursor.execute(copy)
    chosen = Preference.objects.filter(event="release").order_by("user")
    assert list(chosen.values_list("user__username", "by_mail", "by_call")) == [
        ("ada", False, True),
        ("bo", True, True),
    ]


@pytest.mark.django_db
def test_an_installation_with_all_of_them_is_migrated() -> None:
    call_command("migrate", verbosity=0)
