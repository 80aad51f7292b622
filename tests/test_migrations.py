"""The migrations of each application are in one row, and make the tables that the models describe."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
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
