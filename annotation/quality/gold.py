"""Gold questions: made by admins from answers that are certain, mixed with other questions, and
indistinguishable from them.

A gold question has a status that no step of the pipeline processes. On our own pages it has a HIT
of its own, which a worker leases instead of the next one, with the same kind of token and the same
price. On a marketplace it is published in HITs with other questions, as part of their reward. The
right answer is in one table that no page of a worker reads. Answers to gold are paid from the
track's reservation for gold.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from typing import Any

from django.db import connection, transaction
from django.db.models import Count, Max, Q

from annotation.budget.promises import unpromised_money
from annotation.interfaces.base import Judgment, ParsedResponse, Unit
from annotation.interfaces.registry import interface_by_name, interface_names
from annotation.models import (
    HIT,
    Assignment,
    Gold,
    Policy,
    Question,
    Response,
    Signal,
    Worker,
)
from annotation.platforms.registry import local_platform_names
from annotation.quality.describe import question_title
from kbpo import clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import User
from kbpo.instances.models import Target
from kbpo.money.models import Purpose
from kbpo.money.spend import reserve_money
from kbpo.tracks.models import Track

MOST = 30_000  # places of a gold question's HIT; it is retired long before
MOST_RATE = 0.5
NOTHING = ("", "no")
"""The value of an unmarked unit"""
DICE = random.SystemRandom()

NEXT_GOLD = """
    SELECT g.question_id FROM annotation_gold g
    JOIN annotation_question q ON q.id = g.question_id
    WHERE q.track_id = %(track)s AND q.interface = %(interface)s AND q.status = 'gold'
        AND g.retired_at IS NULL
      AND NOT q.target_id = ANY(%(apart)s)
      AND NOT EXISTS (
          SELECT 1 FROM annotation_question met
          JOIN annotation_hit_questions mhq ON mhq.question_id = met.id
          JOIN annotation_assignment a ON a.hit_id = mhq.hit_id
          WHERE met.target_id = q.target_id AND met.interface = q.interface
              AND a.worker_id = %(worker)s)
    ORDER BY (SELECT count(*) FROM annotation_hit_questions hq JOIN annotation_assignment a
        ON a.hit_id = hq.hit_id
              WHERE hq.question_id = q.id AND a.status <> 'returned')
           + (SELECT coalesce(sum(h.max_assignments), 0) FROM annotation_hit_questions hq
              JOIN annotation_hit h ON h.id = hq.hit_id
              WHERE hq.question_id = q.id AND h.status IN ('intent', 'open')
                  AND h.max_assignments < %(most)s),
             random()
    LIMIT 1
"""
"""Selects the gold question of a track that was shown least often, among those whose target the
worker has never met. For a HIT that any worker may take there is no worker; the HIT's own targets
are excluded."""


class CannotMake(ValueError):
    """Raised for a gold question that cannot be made or retired, or a rate or sum that cannot be
    set; the text is a sentence for the admin.
    """


@dataclass(frozen=True)
class GoldResult:
    """A gold question, the number of its answers, and how many of them are wrong."""

    gold: Gold
    answers: int
    against: int

    @property
    def title(self) -> str:
        return question_title(self.gold.question)

    @property
    def is_doubtful(self) -> bool:
        """Return whether most answers are wrong, so that the gold answer may be wrong."""
        return self.answers >= 4 and 2 * self.against > self.answers


def gold_policy(track: Track) -> Policy:
    """Return the policy of a track; unsaved defaults if it has none."""
    return Policy.objects.filter(track=track).first() or Policy(track=track)


def gold_purpose(track: Track | int) -> Purpose:
    """Return the purpose of the money for gold on a track."""
    return Purpose("gold", track if isinstance(track, int) else track.pk)


def pick_gold_hit(worker: Worker, hit: int, track: int, rate: float) -> HIT | None:
    """Return a gold HIT to lease instead of this one, at random with probability `rate`; otherwise
    None.
    """
    if not rate or DICE.random() >= rate:
        return None
    question = Question.objects.filter(hits=hit)[0]
    gold = _random_gold_question(track, question.interface, worker=worker.pk)
    return None if gold is None or gold_money_left(track) < gold.price else _hit_on_own_pages(gold)


def pick_gold_question(questions: Sequence[Question], places: int) -> Question | None:
    """Return a gold question to publish in one HIT with these questions, at random, or None. The
    probability is chosen so that gold has the share of all questions that the policy sets.
    """
    first = questions[0]
    rate = gold_policy(first.track).gold_rate
    if not rate or DICE.random() >= len(questions) * rate / (1 - rate):
        return None
    gold = _random_gold_question(
        first.track_id, first.interface, apart=[question.target_id for question in questions]
    )
    return None if gold is None or gold_money_left(first.track_id) < gold.price * places else gold


def _random_gold_question(
    track: int, interface: str, *, worker: int = 0, apart: Sequence[int] = ()
) -> Question | None:
    values: dict[str, Any] = {"track": track, "interface": interface, "worker": worker}
    values["apart"] = list(apart)
    with connection.cursor() as cursor:
        # One at a time for each track, so that two of them cannot exceed the reservation; the other
        # gets no gold now.
        cursor.execute(
            "SELECT pg_try_advisory_xact_lock(hashtext('annotation.quality.gold'), %s)", [track]
        )
        if not cursor.fetchone()[0]:
            return None
        cursor.execute(NEXT_GOLD, values | {"most": MOST})
        row = cursor.fetchone()
    return Question.objects.get(pk=row[0]) if row else None


def _hit_on_own_pages(question: Question) -> HIT:
    """Return the HIT of a gold question on our own pages; created on first use."""
    hits = question.hits.filter(
        status="open", platform__in=local_platform_names(), max_assignments=MOST
    )
    hit = hits.first()
    if hit is None:
        hit = HIT.objects.create(
            status="open",
            track=question.track,
            platform="pool",
            max_assignments=MOST,
            reward=question.reward,
        )
        hit.questions.add(question)
    return hit


def is_gold(question: Question) -> bool:
    """Return whether a question is or was gold."""
    return question.payer_kind == "gold"


def questions_in_shown_order(hit: HIT, worker: Worker | None) -> list[Question]:
    """Return the questions of a HIT in an order that does not reveal gold. Gold that this worker
    has met in another HIT is left out, but paid.
    """
    questions = list(hit.questions.all())
    golds = [question for question in questions if is_gold(question)]
    met = _gold_met_before(hit, worker, golds)
    left = [question for question in questions if question.pk not in met]
    if golds and len(questions) > 1:
        return sorted(left, key=lambda row: sha256(f"{hit.token}:{row.pk}".encode()).digest())
    return sorted(left, key=lambda row: (row.order, row.pk))


def _gold_met_before(hit: HIT, worker: Worker | None, golds: Sequence[Question]) -> set[int]:
    """Return the gold questions of a HIT whose targets a worker judged, or began to judge, in an
    earlier HIT.
    """
    if worker is None or not golds:
        return set()
    met = Assignment.objects.filter(worker=worker).exclude(hit=hit).exclude(raw=None, draft=None)
    if (mine := hit.assignments.filter(worker=worker).order_by("pk").first()) is not None:
        met = met.filter(pk__lt=mine.pk)  # if a worker has two HITs open, only one asks it
    return {
        gold.pk
        for gold in golds
        if met.filter(
            hit__questions__target=gold.target_id, hit__questions__interface=gold.interface
        ).exists()
    }


def gold_money_left(track: Track | int) -> Decimal:
    """Return the uncommitted money for gold on a track."""
    return unpromised_money(gold_purpose(track))


def gold_candidates(track: Track, limit: int = 30) -> list[Question]:
    """Return questions whose answer is reliably known, in random order: given by an expert or an
    import, or unanimous among two or more people. All questions about whole documents that have
    labels are included, since an admin corrects their answers.
    """
    sure = Q(target__labels__source__in=["expert", "import"]) | Q(
        target__labels__source="crowd", target__labels__disagreement=0, target__labels__n__gte=2
    )
    exact = [
        name for name in interface_names() if interface_by_name(name).agreement.tolerance == 0.0
    ]
    whole = Q(
        interface__in=[
            name for name in interface_names() if interface_by_name(name).agreement.tolerance
        ]
    )
    questions = Question.objects.filter(
        sure & Q(interface__in=exact) | whole, track=track, status="settled", gold_made=None
    )
    ids = sorted(questions.values_list("pk", flat=True).distinct())
    chosen = DICE.sample(ids, min(limit, len(ids)))
    question_of = Question.objects.select_related("target").in_bulk(chosen)
    return [question_of[pk] for pk in chosen]


@transaction.atomic
def make_gold(source: Question, raw: dict[str, Any], who: User, why: str) -> Gold:
    """Make a gold question with the contents of `source` and this right answer, and return it.
    Raises BadAnswer or CannotMake.
    """
    expected = interface_by_name(source.interface).parse(source, raw)
    if any(judgment.criterion == "flag" for judgment in expected):
        raise CannotMake("A question that cannot be answered cannot be gold. Remove the flag.")
    # If two admins create it at once, the second finds it.
    Target.objects.select_for_update(of=("self",), no_key=True).get(pk=source.target_id)
    dealt = Gold.objects.filter(
        question__track=source.track,
        question__target=source.target_id,
        question__interface=source.interface,
    )
    if dealt.filter(retired_at=None).exists():
        raise CannotMake("This question is gold already.")
    _check_reason(why, "Say how you know that this is right")
    rounds = Question.objects.filter(
        track=source.track, target=source.target_id, interface=source.interface
    )
    question = Question.objects.create(
        status="gold",
        track=source.track,
        target_id=source.target_id,
        interface=source.interface,
        round=(rounds.aggregate(Max("round"))["round__max"] or 0) + 1,
        shown=source.shown,
        payload=source.payload,
        **gold_purpose(source.track).filter_condition("payer"),
        order=0.0,
        answers_wanted=source.answers_wanted,
        price=source.price,
        reward=source.reward,
        extra=source.extra,
        extra_price=source.extra_price,
        seconds=source.seconds,
    )
    if source.track.platform in local_platform_names():
        _hit_on_own_pages(question)
    gold = Gold.objects.create(
        question=question,
        source=source if source.pk else None,
        made_by=who,
        why=why[:2000],
        expected=[
            {"target": one.target_id, "criterion": one.criterion, "value": one.value}
            for one in expected
        ],
    )
    write_audit_entry("make gold", f"gold:{gold.pk}", who=who, why=why, track=source.track.slug)
    return gold


@transaction.atomic
def retire_gold(gold: Gold, who: User, why: str) -> bool:
    """Retire a gold question and return whether it was active. Answers stay paid. Raises
    CannotMake.
    """
    _check_reason(why, "Nothing was retired: say why")
    if not Gold.objects.filter(pk=gold.pk, retired_at=None).update(retired_at=clock.now()):
        return False
    gold.question.move("cancelled", "It is no longer gold.")
    gold.question.hits.filter(platform__in=local_platform_names()).update(
        status="closed", status_since=clock.now()
    )
    write_audit_entry(
        "retire gold", f"gold:{gold.pk}", who=who, why=why, track=gold.question.track.slug
    )
    return True


@transaction.atomic
def set_gold_rate(track: Track, rate: float, who: User, why: str) -> Policy:
    """Set the share of gold of a track, from 0 to 0.5, and return its policy. Raises CannotMake."""
    if not 0 <= rate <= MOST_RATE:
        raise CannotMake("Between 0 and 50 % of everybody’s questions can be gold.")
    _check_reason(why, "The share was not changed: give a reason")
    policy, _ = Policy.objects.get_or_create(track=track)
    before, policy.gold_rate = policy.gold_rate, rate
    policy.save(update_fields=["gold_rate"])
    about, shares = f"track:{track.slug}", {"before": f"{before:.0%}", "after": f"{rate:.0%}"}
    write_audit_entry("gold rate", about, who=who, why=why, track=track.slug, **shares)
    return policy


def reserve_gold_money(track: Track, amount: Decimal, who: User, why: str, *, key: str) -> None:
    """Reserve more of the track's budget for gold. Raises OverBudget or CannotMake."""
    _check_reason(why, "Nothing was reserved: give a purpose")
    ledger_key = f"gold:{track.pk}:{key}"[:64]
    reserve_money(
        track, None, gold_purpose(track), amount, key=ledger_key, who=who, why=f"Gold: {why}"
    )


def _check_reason(why: str, request: str) -> None:
    """Raise CannotMake with this request if no reason is given."""
    if not why.strip():
        raise CannotMake(f"{request}. It is logged.")


def grade_answer(assignment: Assignment) -> bool | None:
    """Grade an answer to a gold question, once, and return whether it is right; None if the answer
    contains no gold.
    """
    golds = {
        gold.question_id: gold for gold in Gold.objects.filter(question__hits=assignment.hit_id)
    }
    if not golds:
        return None
    answers: dict[int, list[Response]] = defaultdict(list)
    for response in assignment.responses.all():
        if response.question_id in golds:
            answers[response.question_id].append(response)
    if not answers:
        return None  # its worker had met them before, and was not asked
    right = all(is_gold_answer_right(golds[pk], responses) for pk, responses in answers.items())
    detail = "" if right else "It is not the answer to a question that we know the answer to."
    Signal.objects.get_or_create(
        assignment=assignment, kind="gold", defaults={"against": not right, "detail": detail}
    )
    return right


def is_gold_answer_right(gold: Gold, responses: Sequence[Judgment]) -> bool:
    """Return whether responses equal the right answer in all units. For whole documents, F1 must be
    at least one minus the tolerance of the interface.
    """
    question = gold.question
    interface = interface_by_name(question.interface)
    expected: dict[Unit, str] = {}
    given: dict[Unit, str] = {}
    for right in right_answer(gold):
        expected.update(interface.agreement_units(question, right))
    for response in responses:
        given.update(interface.agreement_units(question, response))
    if interface.agreement.tolerance:
        return f1_of_units(expected, given) >= 1 - interface.agreement.tolerance
    return expected == given


def right_answer(gold: Gold) -> list[ParsedResponse]:
    """Return the right answer to a gold question."""
    return [
        ParsedResponse(judgment["target"], judgment["criterion"], judgment["value"])
        for judgment in gold.expected
    ]


def f1_of_units(expected: Mapping[Unit, str], given_units: Mapping[Unit, str]) -> float:
    """Return F1 of the marked units against the expected ones; 1 if both are empty. Titles are
    optional, and a flagged document has no marks.
    """
    wanted, marked = _marked_units(expected), _marked_units(given_units)
    flag = given_units.get(("flag", ""))
    if flag == "yes" or not (wanted or marked):
        return float(flag == expected.get(("flag", "")))
    return 2 * len(wanted & marked) / (len(wanted) + len(marked))


def _marked_units(answer: Mapping[Unit, str]) -> set[tuple[Unit, str]]:
    """Return the marked units of an answer with their values."""
    marks = set()
    for unit, value in answer.items():
        if unit[0] not in ("link", "flag") and value not in NOTHING:
            marks.add((unit, value))
    return marks


def gold_results(track: Track) -> list[GoldResult]:
    """Return the active gold questions of a track, newest first, with their results."""
    dealt = Gold.objects.filter(question__track=track, retired_at=None).order_by("-pk")
    golds = list(dealt.select_related("question", "made_by"))
    graded = Signal.objects.filter(kind="gold", assignment__hit__questions__gold__in=golds)
    counted = graded.values_list("assignment__hit__questions", "against").annotate(Count("pk"))
    answers: Counter[int] = Counter()
    wrong: Counter[int] = Counter()
    for question, against, n in counted.order_by():
        answers[question] += n
        if against:
            wrong[question] += n
    return [GoldResult(gold, answers[gold.question_id], wrong[gold.question_id]) for gold in golds]
