"""The migrations of each application are in one row, and make the tables that the models describe.

Each begins with a baseline that stands for all that was migrated before anything was deployed.
"""

from __future__ import annotations

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState


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
def test_an_installation_with_all_of_them_is_migrated() -> None:
    call_command("migrate", verbosity=0)
