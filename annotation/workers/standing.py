"""Reads at once what decides which questions may be offered to a worker."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, OuterRef
from django.db.models.functions import JSONObject

from annotation.models import Worker
from annotation.workers.consent import agreed
from annotation.workers.intake import tracks_for_volunteers
from annotation.workers.models import Leaving, TutorialRun
from annotation.workers.teach import taught_by
from kbpo.accounts.models import Team


@dataclass(frozen=True)
class WorkerStanding:
    """What a worker may be offered. `worker` is the row as it stood at the same moment."""

    worker: Worker
    consented: bool
    leaving: bool
    taught: list[str]
    """Interfaces whose tutorial they passed, or that have none."""
    tracks: list[int] | None
    """The tracks that take volunteers, if they are one; None: all."""
    teams: list[int] | None
    """Their teams, whose systems they do not judge; None, which spares a search, if they have none."""

    @property
    def may_be_asked(self) -> bool:
        return self.worker.excluded_at is None and self.consented and not self.leaving


def standing_of(pk: int) -> WorkerStanding:
    """Return the standing of the worker with that key, in one statement but for volunteers."""
    passed = TutorialRun.objects.filter(worker=OuterRef("pk"), passed=True)
    teams = Team.members.through.objects.filter(user=OuterRef("user"))
    row = (
        Worker.objects.select_related("user")
        .annotate(
            consented=agreed(OuterRef("pk")),
            leaves=Exists(Leaving.objects.filter(worker=OuterRef("pk"))),
            passed=ArraySubquery(
                passed.values(run=JSONObject(interface="interface", version="version"))
            ),
            team_pks=ArraySubquery(teams.values("team_id")),
        )
        .get(pk=pk)
    )
    volunteer = row.user is not None and row.user.is_volunteer
    return WorkerStanding(
        worker=row,
        consented=row.consented,
        leaving=row.leaves,
        taught=taught_by({(run["interface"], run["version"]) for run in row.passed}),
        tracks=tracks_for_volunteers() if volunteer else None,
        teams=row.team_pks or None,
    )
