"""Which questions make the tutorial of an interface: those that are built in, and gold with a
sentence of feedback.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from django.db import connection, transaction
from django.db.models import QuerySet

from annotation.models import Gold
from annotation.quality.gold import retire
from annotation.workers import teach
from annotation.workers.models import OwnTutorial, TutorialRun
from kbpo.accounts.audit import note
from kbpo.accounts.models import User
from kbpo.instances.models import Target

MOST = 20
"""Questions of a tutorial"""
APART = 4
"""From so many gold questions on each attempt has its own half of them"""
SHORTEST, LONGEST = 20, 1000
"""Characters of what is said after a question"""


Asked: TypeAlias = dict[str, Any]
"""A question as in tutorial.json"""


class CannotTeach(ValueError):
    """A tutorial that cannot be; the text is a sentence for the admin."""


class ChangedMeanwhile(CannotTeach):
    """The admin saw another version than the one that holds; `now` is that one (0: as built in)."""

    def __init__(self, now: int, seen: int) -> None:
        what = f"Somebody made version {now} of this tutorial after you opened this page"
        if not 0 <= seen < now:
            what = "This form does not say which version of the tutorial you had before you"
        super().__init__(
            f"{what}, so nothing was changed. What you chose stands here: look at what is taught"
            " now first, in another window, or teach this in its place."
        )
        self.now = now


def chosen(interface: str) -> OwnTutorial | None:
    """Return what an admin chose last for an interface; None as long as it is as built in."""
    return OwnTutorial.objects.filter(interface=interface).order_by("-version").first()


def teachable(interface: str) -> QuerySet[Gold]:
    """Return the gold of all tracks that can be taught: dealt out now, and the answer known as the
    form sent it.
    """
    golds = Gold.objects.filter(retired_at=None, raw__isnull=False, question__status="gold")
    golds = golds.filter(question__interface=interface)
    return golds.select_related("question__track").order_by("-pk")


@transaction.atomic
def teach_these(
    interface: str,
    built_in: Sequence[int],
    golds: Mapping[int, str],
    needed: int,
    who: User,
    *,
    anew: bool,
    seen: int,
) -> OwnTutorial:
    """Return the new version of a tutorial, in the place of the one that the admin has `seen` (0:
    as built in): these of its built-in questions, by number from 0, then gold with a sentence each.
    Such gold is dealt out no more and its judgments are public, for everybody who learns reads
    them. Whoever passed before need not again unless it is asked for `anew`. Raises CannotTeach;
    ChangedMeanwhile where another version holds than the one that was seen (below 0: nobody knows
    which).
    """
    _one_at_a_time(interface)
    before, base = chosen(interface), teach.built_in().get(interface)
    now = before.version if before else 0
    if seen != now:
        raise ChangedMeanwhile(now, seen)
    taught = taught_so_far(interface)
    questions = [_built_in(base, place, 1) for place in sorted(set(built_in))]
    of_gold = [_of_gold(interface, pk, why, taught.get(pk), who) for pk, why in golds.items()]
    total = len(questions) + len(of_gold)
    if not 1 <= total <= MOST:
        raise CannotTeach(f"Choose between 1 and {MOST} questions; these are {total}.")
    first_time, second_time = halves(of_gold)
    n = len(questions) + len(first_time)
    if not 1 <= needed <= n:
        asked = "" if n == total else " that are asked at a time"
        raise CannotTeach(f"Say how many of the {n}{asked} must be right: from 1 to {n}.")
    last = max(now, base.version if base else 0)
    since = before.since if before else (base.version if base else 1)
    row = OwnTutorial.objects.create(
        interface=interface,
        version=last + 1,
        since=last + 1 if anew else since,
        needed=needed,
        questions=[*questions, *first_time],
        again=[*(_built_in(base, one["built_in"], 2) for one in questions), *second_time],
        made_by=who,
    )
    if anew:
        _end_promises(row)
    told = f"{len(questions)} built in, {len(of_gold)} of gold, {needed} needed"
    why = "everybody learns anew" if anew else "who passed before stays so"
    note("teach", f"tutorial:{interface}", who=who, after=f"version {row.version}: {told}", why=why)
    return row


def _one_at_a_time(interface: str) -> None:
    """Lock this tutorial until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtext('annotation.quality.taught'), hashtext(%s))",
            [interface],
        )


def halves(of_gold: Sequence[Asked]) -> tuple[list[Asked], list[Asked]]:
    """Return the gold of the first attempt and that of the second: other questions, as many, but
    for an odd one, which is in both; fewer than four are all in both.
    """
    if len(of_gold) < APART:
        return list(of_gold), list(of_gold)
    half = len(of_gold) // 2
    odd = of_gold[2 * half :]
    return [*of_gold[:half], *odd], [*of_gold[half : 2 * half], *odd]


def gold_of(own: OwnTutorial | None) -> list[Asked]:
    """Return the gold that a tutorial asks in either attempt, each once, in the order of choice but
    for an odd one.
    """
    asked = [*own.questions, *own.again] if own else []
    return list({one["gold"]: one for one in asked if "gold" in one}.values())


def taught_so_far(interface: str) -> dict[int, Asked]:
    """Return the gold that any version of a tutorial asked, by its number, as it was last: it is
    public, and may be taught again.
    """
    owns = OwnTutorial.objects.filter(interface=interface).order_by("version")
    return {asked["gold"]: asked for own in owns for asked in gold_of(own)}


def _built_in(base: teach.Tutorial | None, place: int, attempt: int) -> Asked:
    if base is None or not 0 <= place < len(base.questions):
        raise CannotTeach("That question is not built in. Choose again.")
    question = base.asked(attempt)[place]
    return question | {"payload": base.payload | question["payload"], "built_in": place}


def _of_gold(interface: str, pk: int, why: str, taught: Asked | None, who: User) -> Asked:
    """Gold as a question of a tutorial; what was taught before is as it was, but for the
    sentence.
    """
    why = " ".join(why.split())
    if not SHORTEST <= len(why) <= LONGEST:
        raise CannotTeach(
            f"Say of each gold question in {SHORTEST} to {LONGEST:,} characters why its answer is"
            " right: people read it after theirs."
        )
    if taught is not None:
        return {**taught, "why": why}
    gold = teachable(interface).filter(pk=pk).first()
    if gold is None:
        raise CannotTeach("That gold question cannot be taught any more. Choose again.")
    question = gold.question
    target = Target.objects.select_related("corpus").get(pk=question.target_id)
    if not target.is_dev and target.corpus.opened_at is None:
        raise CannotTeach(
            "What is taught is public: choose gold of the development part, or of a closed track."
        )
    retire(gold, who, "It is a question of the tutorial now.")
    of_gold = {"gold": pk, "target": question.target_id, "payload": question.payload}
    return {**of_gold, "right": gold.raw, "why": why}


def _end_promises(row: OwnTutorial) -> None:
    """Return the money reserved for attempts that no longer count to the track."""
    runs = TutorialRun.objects.select_for_update(of=("self",)).filter(
        interface=row.interface, version__lt=row.since, promised__gt=0
    )
    for run in runs.exclude(passed=True).select_related("track"):
        teach.take_back(run, "The tutorial was changed, and is asked for anew")
