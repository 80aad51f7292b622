"""Who has a stake in a judgment: nobody judges what a team of theirs predicts, or says something
about. The kinds of track say what that is besides the target itself (`Track.at_stake`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db.models import BigIntegerField, BooleanField, F, Func, Q, Value

from kbpo.accounts.models import Team, User
from kbpo.tracks.registry import KINDS, class_of

PREDICTED = """EXISTS (
    SELECT 1 FROM instances_instance i
    JOIN submissions_prediction p ON p.instance_id = i.id
    JOIN submissions_submission s ON s.id = p.submission_id
    WHERE i.target_id = t.id AND s.team_id = ANY(asked.teams))"""


def at_stake() -> str:
    """Return the SQL condition under which teams say something that a question touches: over `t`,
    the row of its target, and `asked`, which has its `payload` and the `teams` (an array).

    A submission counts as soon as it is read, confirmed or not, and once it is withdrawn too: it
    may come back.
    """
    return _any_of(tuple(KINDS.items()))


@cache
def _any_of(kinds: tuple[tuple[str, str], ...]) -> str:
    """Return the condition by the rules of these kinds, each once."""
    rules = (rule for kind, _ in kinds for rule in class_of(kind).at_stake)
    return " OR ".join(dict.fromkeys([PREDICTED, *rules]))


def has_stake(user: User, *, target: str = "target", payload: str = "payload") -> Q:
    """Return the condition under which a team of this person, be it one that they left, has a stake
    in a row. Rows refer to their target by `target`, and have what is asked in `payload`.
    """
    theirs = Team.objects.filter(Q(members=user) | Q(former=user))
    teams = list(theirs.values_list("pk", flat=True).distinct())
    if not teams:  # most experts: the rest would be asked of every row for nothing
        return Q(pk__in=())
    return Q(_AtStake(F(target), F(payload), Value(teams, ArrayField(BigIntegerField()))))


class _AtStake(Func):
    """The condition of a target, a payload and teams that are columns and values of a query."""

    output_field = BooleanField()

    def __init__(self, *expressions: Any) -> None:
        super().__init__(*expressions)
        self.template = f"""EXISTS (
            SELECT 1 FROM (SELECT %(expressions)s) AS asked (target, payload, teams)
            JOIN instances_target t ON t.id = asked.target
            WHERE {at_stake()})"""
