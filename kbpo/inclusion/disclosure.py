"""What was disclosed to a team: which targets of a submission it knew of when it decided on it, and
what that leaves to chance.

A team that deletes what it was shown to be wrong and uploads the rest would be scored on its own
key. So a target that an earlier submission of the team predicts is split by its state at that
moment: with a judgment it is a certainty unit, and counts for the team alone; without one it is
known that no route had brought it in, so that each route has the chance that it did so since. That
holds for every route by itself, for they are independent.

Documents say more than their single judgments do: from what a team sees marked in one it knows that
all of it was read. So for a team that could see any judgment of its own, the documents that were
read by then are no chance, whatever it predicts in them: what is judged there now counts for itself
alone, and other targets come in with documents that were read since, or not with documents at all.

Accounts are not people: a run that was tested and predicts of an earlier sample what only somebody
who read its judgments would predict (`LeakTest`, made by `kbpo.sampling.leaks`) is treated as if
its team had submitted that earlier run itself. So is a run of texts some of which an earlier one
wrote word for word: of two texts for one input it could take the one that was judged better, and
any where neither was, which no test tells from chance. The same holds of pairs of texts.

Who judges learns what was drawn, and of it what is right. So what any of a team's people were asked
about counts for the run that they decide on after that as drawn for sure; and since what they were
not asked tells, too, the runs that it was drawn for count as if the team had submitted them. Of a
run of which they were asked nothing they learn that: with n draws, of the order of 1/n. Who is an
admin may look at all judgments, and so has the team of one seen them all. Who belonged to a team
and who was an admin is taken as it was when it decided, and what somebody was asked is kept when
they leave: what comes after a decision changes nothing of its score.

All of these follow from conditioning on the state at that moment, which is right whatever the team
looked at; what is left to others' judgments is only what the team could know nothing of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property, partial

import numpy as np
from django.db.models import Q, QuerySet

from kbpo import clock
from kbpo.corpus.fetch import fetch, fetch_arrays
from kbpo.inclusion.asked import asked_about
from kbpo.inclusion.documents import Documents, annotated_by, inside
from kbpo.inclusion.draws import Draws
from kbpo.inclusion.moment import moment_of, with_label
from kbpo.inclusion.route import Private
from kbpo.inclusion.thresholds import Thresholds, spread
from kbpo.instances.models import Target
from kbpo.prepared import Prepared
from kbpo.sampling.models import LeakTest, Sample
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from scoring.arrays import Bools, Floats, Ids
from scoring.documents import predicted_by
from scoring.inclusion import Disclosed, History
from scoring.pool import Pool

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def decided(submission: Submission) -> datetime:
    """When the team decided on a submission: at its confirmation, not at its upload.

    Else a team could leave drafts lying, wait for the judgments of one, and confirm the draft that
    has least of what is wrong.
    """
    return submission.confirmed_at or clock.now()


def earlier(submission: Submission) -> list[int]:
    """The submissions whose judgments this one's team could see when it decided on it, in the order
    of upload.

    Those of its own team, of teams that share a member with it, also one that has left, or
    whose run one of its members uploaded, all if an admin belongs to it, those of closed
    tracks, those whose samples its people judged a part of, and those whose answers it seems to
    have been made from; each only if its sample was drawn by then. What became of it later does
    not matter: a withdrawn one was seen, and a draft shows nothing. Nor does who joins the team
    later, leaves it, or ceases to be an admin or an annotator: a score that is out stays.
    """
    return Decision(submission).earlier()


def read_from(submission: Submission) -> set[int]:
    """The earlier runs of others whose judgments its people seem to have read, by the tests of this
    run and of what they had submitted before; and those that these had been made from in turn.

    A finding that was lifted later had counted when the sample was drawn, and still does.
    """
    return Decision(submission).read_from()


def earlier_of_its_people(submission: Submission) -> list[int]:
    """Those `earlier` ones that its own people submitted: its team can look up their judgments."""
    decision = Decision(submission)
    return decision.sampled(decision.of_its_people)


_PEOPLE = Prepared("""
    WITH belonged AS (
        SELECT team_id, user_id FROM accounts_team_members
        WHERE (joined_at > %(when)s) IS NOT TRUE
        UNION SELECT team_id, user_id FROM accounts_team_former
        WHERE (joined_at > %(when)s) IS NOT TRUE
    ), person AS (
        SELECT user_id FROM belonged WHERE team_id = %(team)s UNION SELECT %(user)s::bigint
    )
    SELECT u.id, NULL::bigint, coalesce(u.admin_since <= %(when)s, u.is_staff)
    FROM person JOIN accounts_user u ON u.id = user_id
    UNION ALL SELECT NULL, team_id, false FROM belonged JOIN person USING (user_id)
""")


class Decision:
    """What a team could know when it decided on a submission; each part is asked for once."""

    def __init__(self, submission: Submission) -> None:
        self.submission = submission
        self.when = decided(submission)
        rows = _PEOPLE.rows(team=submission.team_id, user=submission.user_id, when=self.when)
        self.people: set[int] = {user for user, _, _ in rows} - {None}
        """Who belonged to the team by then, and who uploaded it"""
        self.teams: set[int] = {submission.team_id, *(team for _, team, _ in rows)} - {None}
        """All teams to which these belonged by then"""
        self.sees_all = any(is_admin for *_, is_admin in rows)
        """One of them was an admin, who may look at every judgment"""
        self.of_its_people = Q(team__in=self.teams) | Q(user__in=self.people)
        """The runs of all these"""

    @cached_property
    def asked_about(self) -> Ids:
        """The targets about which anybody of its people was asked."""
        return np.array(sorted(asked_about(self.people, self.when)), dtype=np.int64)

    @cached_property
    def is_leaked(self) -> bool:
        """Whether the run seems to be made from others' answers."""
        counted = LeakTest.objects.filter(submission=self.submission, seen=True, lifted=False)
        return counted.exclude(channel=LeakTest.Channel.SAME).exists()

    def earlier(self) -> list[int]:
        """See `earlier`."""
        if self.sees_all:
            return self.sampled(Q())
        of_all = Q(track__status=Track.Status.CLOSED, track__closed_at__lte=self.when)
        known = Q(pk__in=self.read_from() | self._drawn_for())
        return self.sampled(self.of_its_people | of_all | known)

    def read_from(self) -> set[int]:
        """See `read_from`."""
        submission = self.submission
        counted = LeakTest.objects.filter(seen=True)
        # What others repeated of whom tells nothing of what this run repeats: it has its own rows.
        of_others = ~Q(channel=LeakTest.Channel.SAME)
        by_then = Q(tested_at__lte=self.when) & ~Q(lifted=True, decided_at__lte=self.when)
        theirs = Submission.objects.filter(self.of_its_people).exclude(pk=submission.pk)
        earlier_runs = set[int]()
        more = Q(submission=submission.pk) | (Q(submission__in=theirs) & by_then & of_others)
        while new := set(counted.filter(more).values_list("earlier", flat=True)) - earlier_runs:
            earlier_runs |= new
            more = Q(submission__in=new) & by_then & of_others
        return earlier_runs - {submission.pk}

    def _drawn_for(self) -> set[int]:
        """The submissions that had any of what its people were asked in their samples by then."""
        if not self.asked_about.size:
            return set()
        drawn = Sample.objects.filter(
            target__in=self.asked_about.tolist(), batch__drawn_at__lte=self.when
        )
        return set(drawn.values_list("batch__submission", flat=True))

    def shows_documents(self) -> bool:
        """Whether the run says so much more, or less, in documents that were read, or is right
        there so much oftener, that its team seems to have known them.
        """
        of_documents = self.submission.leak_tests.filter(channel__in=LeakTest.OF_DOCUMENTS)
        return of_documents.filter(seen=True).exists()

    def planned_before(self) -> bool:
        """Whether the team had another submission by then of which it was told anything, if only
        what it would cost.
        """
        return self._others().filter(self.of_its_people, read_at__lte=self.when).exists()

    def sampled(self, which: Q) -> list[int]:
        """The others of these whose sample was drawn by then, in the order of upload."""
        shown = self._others().filter(sampled_at__lte=self.when).filter(which)
        return list(shown.order_by("received_at", "pk").values_list("pk", flat=True))

    def _others(self) -> QuerySet[Submission]:
        of_corpus = Submission.objects.filter(track__corpus=self.submission.track.corpus_id)
        return of_corpus.exclude(pk=self.submission.pk)

    def shown(self, pool: Pool, first_drawn: Callable[[], Floats]) -> Bools:
        """See `shown_to`; `first_drawn` reads what the function of that name does."""
        known = np.concatenate([_targets(self.earlier()), self.asked_about])
        shown = np.isin(pool.target_id, known) | _public(pool, self.when)
        if not shown.any() or not kind_of(self.submission.track).opposes:
            return shown
        return shown & self._were_there(pool, first_drawn())

    def _were_there(self, pool: Pool, first_drawn: Floats) -> Bools:
        """(t,) the targets that could have been asked by then, or were. Pairs that earlier runs
        have with a text of its own came with it: nobody can have learnt anything of these, and they
        are no one's alone.
        """
        had_chance = first_drawn <= _microseconds(self.when)
        asked = np.isin(pool.target_id, self.asked_about)
        return had_chance | asked | with_label(pool, "created_at <= %s", self.when)

    def could_know(self, documents: Sequence[int], targets_seen: Bools) -> list[int]:
        """Those of the documents that were annotated when the team decided, if anything tells it of
        them: a judgment that it could see, or a document that was put before one of its people.

        Or what a plan tells of them: a draft that predicts things of one document alone is told how
        many are judged there. Or if what it says shows that it knows them.
        """
        if not documents:
            return []
        told = targets_seen.any() or _has_document(self.asked_about)
        if told or self.planned_before() or self.shows_documents():
            return annotated_by(self.submission.track, documents, self.when)
        return []


def disclosed(pool: Pool, documents: Sequence[int] = ()) -> dict[int, Disclosed]:
    """Return column of the pool -> what its team could see, for every submission whose team could
    see anything of what it predicts, or of the documents, or that seems to be made from answers.

    `documents` are those that are a route.
    """
    submission_of = (
        Submission.objects.filter(pk__in=pool.systems)
        .select_related("track__corpus", "team")
        .in_bulk()
    )
    decision: dict[int, Decision] = {}
    shown: dict[int, Bools] = {}
    predicted_seen: dict[int, Bools] = {}
    read: dict[int, list[int]] = {}
    drawn = cache(partial(first_drawn, pool))
    for column, pk in enumerate(pool.systems):
        of_team = Decision(submission_of[pk])
        could_see = of_team.shown(pool, drawn)
        targets = could_see & _predicted(pool, submission_of[pk])
        could_know = of_team.could_know(documents, targets)
        if targets.any() or could_know or of_team.is_leaked:
            decision[column] = of_team
            shown[column], predicted_seen[column], read[column] = could_see, targets, could_know
    hidden = {
        pool.systems[column]: pool.target_id[targets] for column, targets in predicted_seen.items()
    }
    return {
        column: _disclosed(pool, decision[column], shown[column], targets, read[column], hidden)
        for column, targets in predicted_seen.items()
    }


def shown_to(pool: Pool, submission: Submission) -> Bools:
    """(t,) the targets whose state its team could see when it decided on a submission."""
    return Decision(submission).shown(pool, partial(first_drawn, pool))


def first_drawn(pool: Pool) -> Floats:
    """(t,) When each target first had a chance to be asked, in microseconds since 1970; ∞: never"""
    first = fetch_arrays(
        {"target": "h.target_id", "at": "extract(epoch FROM min(b.drawn_at)) * 1000000"},
        "FROM sampling_threshold h JOIN sampling_samplebatch b ON b.id = h.batch_id"
        " WHERE h.target_id BETWEEN %s AND %s GROUP BY h.target_id",
        pool.ends,
        reals=("at",),
    )
    at = spread(first["target"], first["at"], pool.target_id)
    return np.where(at > 0, at, np.inf)


def _microseconds(when: datetime) -> int:
    return (when - EPOCH) // timedelta(microseconds=1)


def _has_document(targets: Ids) -> bool:
    """Whether a whole document is among these targets."""
    documents = Target.objects.filter(pk__in=targets.tolist(), kind=Target.Kind.DOCUMENT)
    return bool(targets.size) and documents.exists()


def _disclosed(
    pool: Pool,
    decision: Decision,
    shown: Bools,
    targets_seen: Bools,
    read: Sequence[int],
    hidden: Private,
) -> Disclosed:
    submission, when = decision.submission, decision.when
    track = submission.track
    moment = moment_of(pool, track, when, _predicted_by(pool, submission, when))
    hidden_of_others = {
        owner: targets for owner, targets in hidden.items() if owner != submission.pk
    }
    nothing = np.zeros(pool.target_id.size, dtype=np.bool_)
    came_in = moment.judged | np.isin(pool.target_id, decision.asked_about)
    return Disclosed(
        certainty=targets_seen & came_in,
        unjudged=targets_seen & ~came_in,
        threshold=Thresholds(track, pool, nothing, hidden_of_others).at(moment),
        drawn=Draws(track, pool, nothing, hidden_of_others).at(moment),
        inside=inside(pool, read),
        document=Documents(track, pool, read, ~nothing).at(moment),
        history=History(when, shown),
        read=tuple(read),
        leaked=decision.is_leaked,
    )


def drawn_by_then(pool: Pool, submission: Submission, hidden: Private) -> Floats:
    """Return (t,) the probability that each target had been drawn and judged when a submission was
    decided on, by draws that it is not `hidden` from: `Disclosed.drawn` for a run to which some
    draws are no sample, now or then.
    """
    when, nothing = decided(submission), np.zeros(pool.target_id.size, dtype=np.bool_)
    moment = moment_of(pool, submission.track, when, _predicted_by(pool, submission, when))
    return Draws(submission.track, pool, nothing, hidden).at(moment)


def aware(found: Mapping[int, Disclosed]) -> set[int]:
    """Return the columns whose teams could know which documents were read when they decided."""
    return {column for column, disclosure in found.items() if disclosure.document.any()}


def private(pool: Pool, found: Mapping[int, Disclosed], *, but: int | None = None) -> Private:
    """Submission -> the targets that its team could see: what was asked about them for this
    submission counts for it alone.

    For others that is no sample: the team may have deleted what it saw to be wrong. `but` is the
    column of the submission for which it does count: it is left out.
    """
    return {
        pool.systems[column]: pool.target_id[disclosure.known]
        for column, disclosure in found.items()
        if column != but
    }


def _predicted(pool: Pool, submission: Submission) -> Bools:
    """Whether the submission predicts something on each target."""
    rows = pool.predicted(pool.systems.index(submission.pk))
    predicted = np.zeros(pool.target_id.size, dtype=np.bool_)
    predicted[pool.target[rows]] = True
    return predicted


def _targets(submissions: Sequence[int]) -> Ids:
    """The targets on which some submissions predict anything."""
    if not submissions:
        return np.zeros(0, dtype=np.int64)
    targets = fetch(
        "SELECT DISTINCT i.target_id FROM submissions_prediction p JOIN instances_instance i ON"
        " i.id = p.instance_id WHERE p.submission_id = ANY(%s)",
        [list(submissions)],
    )
    return np.array([row[0] for row in targets], dtype=np.int64)


def _predicted_by(pool: Pool, submission: Submission, when: datetime) -> Bools:
    """The targets of the pool when a submission was decided on: what came since must not change
    what was known.
    """
    sampled = Submission.objects.filter(pk__in=pool.systems).filter(
        Q(sampled_at__lte=when) | Q(pk=submission.pk)
    )
    columns = [pool.systems.index(pk) for pk in sampled.values_list("pk", flat=True)]
    rows = predicted_by(pool, columns)
    predicted = np.zeros(pool.target_id.size, dtype=np.bool_)
    predicted[pool.target[rows]] = True
    return predicted


def _public(pool: Pool, when: datetime) -> Bools:
    """Whether everybody could see a judgment of each target by then."""
    return with_label(pool, "value <> '{}'::jsonb AND public_at <= %s", when)
