"""The migrations of each application are in one row, and make the tables that the models describe.

Each begins with a baseline that stands for all that was migrated before anything was deployed.
"""

from __future__ import annotations

from datetime import timedelta
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

from kbpo import clock
from kbpo.accounts.models import Membership, Team, User
from kbpo.corpus.models import Corpus
from kbpo.tracks.generation.models import Input


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
@pytest.mark.parametrize("left_out", ["0001_initial", "0006_list_predictions"])
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
    assert "commit cb3868f" in str(refused.value)
    assert recorder.applied_migrations().keys() == had


@pytest.mark.django_db
def test_an_installation_with_all_of_them_is_migrated() -> None:
    call_command("migrate", verbosity=0)


@pytest.mark.django_db
def test_inputs_that_nobody_could_download_so_far_are_not_for_everybody_at_once() -> None:
    written, read = (
        Corpus.objects.create(name=name, slug=name, schema={}) for name in ("written", "read")
    )
    Input.objects.create(corpus=written, key="1", source="A text.")
    import_module("kbpo.tracks.generation.migrations.0002_inputs_stay_where_they_are").keep(
        apps, None
    )
    for corpus, is_kept in ((written, False), (read, True)):
        corpus.refresh_from_db()
        assert corpus.may_be_downloaded is is_kept


@pytest.mark.django_db
def test_what_somebody_has_read_is_read_in_each_of_their_teams() -> None:
    read, later = clock.now(), clock.now() + timedelta(days=1)
    reader, other = (User.objects.create_user(name) for name in ("reader", "other"))
    for slug, moment in (("first", read), ("second", later)):
        team = Team.objects.create(name=slug, slug=slug)
        Membership.objects.create(team=team, user=reader, news_read_at=moment)
        Membership.objects.create(team=team, user=other)
    connection.check_constraints()  # or they wait, and no table can be altered
    MigrationExecutor(connection).migrate([("accounts", "0001_baseline")])
    with connection.cursor() as cursor:
        cursor.execute("SELECT news_read_at FROM accounts_user ORDER BY id")
        assert cursor.fetchall() == [(read,), (None,)], "what was not read anywhere is news"
    MigrationExecutor(connection).migrate([("accounts", "0002_read_news_by_team")])
    found = Membership.objects.order_by("user", "team").values_list("news_read_at", flat=True)
    assert list(found) == [read, read, None, None]
