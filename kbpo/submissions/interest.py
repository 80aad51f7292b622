"""Who has a stake in a judgment: nobody judges what his own team predicts, or wrote."""

from __future__ import annotations

from functools import reduce
from operator import or_

from django.db.models import BooleanField, Exists, Func, OuterRef, Q
from django.db.models.fields.json import KeyTextTransform, KeyTransform

from kbpo.accounts.models import Team, User
from kbpo.submissions.models import Prediction, Submission

OTHER_CANDIDATE = "$.candidates[*] ? (@.span[0] != $.span[0] || @.span[1] != $.span[1])"
"""The JSON path of what a mention, a side of a question's payload, may refer to besides itself:
where there is something, people are asked"""
SAID_OF = ("instance__subject", "instance__object", "subject_canonical", "object_canonical")
"""The mentions of a prediction"""


def has_stake(user: User, *, target: str = "target", payload: str = "payload") -> Q:
    """Return the condition under which a team of this person, be it one that they left, predicts
    something about a row's target, or about a mention that the row asks about.

    What people say of a mention beside one relation settles it for all: a team has a stake in who
    it is wherever a prediction of theirs has it, or claims that something refers to it. About a
    whole document: where the team predicts anything in it. About two texts that are compared: where
    it wrote one of them, be it in a pair of another team's private run. Rows refer to their target
    by `target`, and have what is asked in `payload`. A submission counts as soon as it is read,
    confirmed or not, and once it is withdrawn too: it may come back.
    """
    theirs = Team.objects.filter(Q(members=user) | Q(former=user))
    teams = list(theirs.values_list("pk", flat=True).distinct())
    if not teams:  # most experts: the rest would be asked of every row for nothing
        return Q(pk__in=())
    predicted = Prediction.objects.filter(submission__team__in=teams)
    alone = predicted.filter(instance__target=OuterRef(target))
    inside = predicted.filter(instance__document=OuterRef(f"{target}__document"))
    compared = KeyTransform("texts", OuterRef(f"{target}__content"))
    wrote = Submission.objects.filter(
        team__in=teams,
        written__key=KeyTextTransform("input", OuterRef(f"{target}__content")),
        written__text__in=[KeyTextTransform(place, compared) for place in (0, 1)],
    )
    linked = Q()
    for side in ("a", "b"):
        begin, end = (OuterRef(f"{target}__{side}_{edge}") for edge in ("begin", "end"))
        mentions = [
            Q(**{f"{place_of}_begin": begin, f"{place_of}_end": end}) for place_of in SAID_OF
        ]
        names_it = Exists(inside.filter(reduce(or_, mentions)))
        linked |= Q(names_it) & Q(_is_asked_to_link(KeyTransform(side, payload)))
    in_document = Q(**{f"{target}__kind": "document"}) & Exists(inside)
    return Q(Exists(alone)) | linked | in_document | Q(Exists(wrote))


def _is_asked_to_link(side: KeyTransform) -> Func:
    """Return the condition that people are asked what a side of a payload refers to."""
    return Func(
        side,
        template=f"jsonb_path_exists(%(expressions)s, '{OTHER_CANDIDATE}')",
        output_field=BooleanField(),
    )
