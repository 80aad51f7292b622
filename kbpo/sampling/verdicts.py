"""Tests a run, whenever a stage of it has ended, by what was judged right of it: before its team
decided on it, and since.

Who reads the answers and leaves out what is wrong can leave out as much blindly beside it, and then
predicts of each sample what chance would have it (`kbpo.sampling.leaks` finds nothing). But of what
was judged it kept what is right, and what is judged later tells how much is right of the rest. Of a
target that is judged by now it is chance, with known probabilities, whether it already was judged
then: π then / π now. What is right cannot depend on that, unless somebody looked; nor can what is
judged right, as long as people judge alike then and now.

That needs answers that were not there before. So each run asks a few among the targets that others
had brought in (`kbpo.sampling.designs.poisson.CHECK`), and more where these leave a doubt: none is
scored by such answers alone as were out before it came.

What a run repeats of texts that are judged one by one counts as seen anyway, which leaves nothing
to test. Where they are compared two by two, a run that joins brings the earlier ones further pairs,
and what was kept of their own samples goes (`kbpo.sampling.distribution.distribute_anew`): until it
is kept of the pairs that there were, nothing is tested.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from estimators.leaks import ShareTest, holm, share_test
from kbpo import clock
from kbpo.inclusion.disclosure import decided, earlier
from kbpo.inclusion.own_thresholds import settled
from kbpo.pool.pool import read_pool
from kbpo.sampling.leaks import LEVEL, Batch, Judged, counts_of, tell
from kbpo.sampling.models import LeakTest, SampleBatch
from kbpo.submissions.models import Submission
from kbpo.tracks.registry import kind_of
from scoring.arrays import Bools, Floats, Ids


def look_again(submission: Submission) -> list[LeakTest]:
    """The tests of a run one of whose stages has just ended in which it shows that the answers to
    an earlier run were read; they are kept, and told.

    It is looked after each stage, and what is found at the k-th look counts 2ᵏ times: together they
    raise no more false alarms than one look would.
    """
    test_of = dict(_against(submission))
    stages = list(submission.batches.filter(settled_at__isnull=False).order_by("pk"))
    times = 2.0 ** _number_of_look(stages, test_of)
    p_values = np.array([test.p_value for test in test_of.values()])
    adjusted = np.minimum(1.0, times * holm(p_values))
    if stages and (p_values.size or "doubt" in stages[-1].settings):
        doubt = min(1.0, times * p_values[adjusted > LEVEL].min(initial=1.0))
        stages[-1].settings["doubt"] = doubt
        stages[-1].save(update_fields=["settings"])
    leak_tests = []
    for (other, test), p in zip(test_of.items(), adjusted.tolist(), strict=True):
        if p > LEVEL or submission.leak_tests.filter(earlier=other, lifted=True).exists():
            continue
        row, _ = LeakTest.objects.update_or_create(
            submission=submission,
            earlier_id=other,
            defaults={
                **counts_of(test),
                "adjusted": p,
                "channel": LeakTest.Channel.RIGHT,
                "seen": True,
                "tested_at": clock.now(),
                "decided_at": None,
            },
        )
        tell(row)
        leak_tests.append(row)
    return leak_tests


def _number_of_look(stages: Sequence[SampleBatch], test_of: Mapping[int, ShareTest]) -> int:
    """Which look this is, at least as many as stages have ended; the latest of these remembers it.

    A run may be judged anew without a stage more, if answers to it were excluded: that is another
    look. Where it shows the same as the one before, nothing new is tested.
    """
    if not stages:
        return 0
    shown = [[other, *counts_of(test).values()] for other, test in sorted(test_of.items())]
    looks = [stage.settings["look"] for stage in stages if "look" in stage.settings]
    last = stages[-1].settings.get("look")
    if last is not None and last["shown"] == shown:
        return int(last["number"])
    number = max([len(stages), *(look["number"] + 1 for look in looks)])
    stages[-1].settings["look"] = {"number": number, "shown": shown}
    stages[-1].save(update_fields=["settings"])
    return int(number)


def _against(submission: Submission) -> Iterator[tuple[int, ShareTest]]:
    """Each earlier run of the track that tells something, with its test."""
    when, own = decided(submission), set(earlier(submission))
    sampled = Submission.objects.filter(track=submission.track, sampled_at__lte=when)
    systems = list(sampled.exclude(pk=submission.pk).order_by("pk").values_list("pk", flat=True))
    if not set(systems) - own:
        return
    pool = read_pool(submission.track, [*systems, submission.pk])
    verdicts = _Verdicts(Judged.of(submission.track, pool, submission))
    for column, other in enumerate(systems):
        test = verdicts.against(column) if other not in own else None
        if test is not None and test.size:
            yield other, test


@dataclass(frozen=True, eq=False)
class _Verdicts:
    """What is judged of a run, and when it came in; the run is the pool's last column."""

    then: Judged
    """What had been drawn when its team decided"""

    def against(self, column: int) -> ShareTest:
        """Return the test by the targets that an earlier run predicts, too."""
        then = self.then
        mine, theirs = then.count(then.predicted(-1)), then.count(then.predicted(column))
        # What its team still predicts of what it saw judged is right the oftener.
        chance = (mine > 0) & (theirs > 0) & then.open & ~then.exposed(column)
        known = chance & ~np.isnan(self._right)
        right = np.zeros(mine.size, dtype=np.bool_)
        if known.any():
            right[known] = self._right[known] > self._right[known].mean()
        at, before, was_before = self._came_in(column, known)
        return share_test(before, was_before, right[at])

    def _came_in(self, column: int, known: Bools) -> tuple[Ids, Floats, Bools]:
        """(k,) each target among some that is asked by now, and each draw of one: which it is, the
        probability that it was asked by then, and whether it was.
        """
        pi_then, pi_now = self._thresholds(column)
        u, batches, tiny = self.then.pool.u, self._batches(column), np.finfo(float).tiny
        asked = np.flatnonzero(known & (u < pi_now))
        places, chances, came = (
            [asked],
            [pi_then[asked] / pi_now[asked]],
            [u[asked] < pi_then[asked]],
        )
        expected = [
            sum((b.drawn.sum() * b.p / max(b.p.sum(), tiny) for b in some), np.zeros(u.size))
            for some in batches
        ]
        share = expected[0] / np.maximum(expected[0] + expected[1], tiny)
        for is_before, some in zip((True, False), batches, strict=True):
            for batch in some:
                drawn = np.repeat(np.flatnonzero(known), batch.drawn[known])
                places.append(drawn)
                chances.append(share[drawn])
                came.append(np.full(drawn.size, is_before))
        return np.concatenate(places), np.concatenate(chances), np.concatenate(came)

    @cached_property
    def _right(self) -> Floats:
        """(t,) how right what the run predicts of each target was judged, in [0, 1]; NaN: not
        known.
        """
        then = self.then
        own = np.flatnonzero(then.predicted(-1))
        verdicts = kind_of(then.track).judge(then.pool.instance[own], then.pool.systems[-1:])
        value, target = verdicts[then.track.criterion][:, 0], then.pool.target[own]
        total = np.bincount(target, weights=value, minlength=then.pool.target_id.size)
        return np.asarray(total / np.maximum(np.bincount(target, minlength=total.size), 1))

    def _thresholds(self, column: int) -> tuple[Floats, Floats]:
        """(t,) below what u was asked for an earlier run by itself, by batches from before; and for
        that one or the run by now.

        What was asked on top of others' thresholds will not do, nor what others asked: a run that
        was made from answers raised what was judged right alone.
        """
        pool, nothing = self.then.pool, np.zeros(self.then.pool.target_id.size)
        hidden = np.isin(pool.target_id, self.then.hidden.get(pool.systems[column], []))
        before = np.where(hidden, 0.0, self._own[0].get(column, nothing))
        return before, np.maximum(before, self._own[1].get(len(pool.systems) - 1, nothing))

    @cached_property
    def _own(self) -> tuple[dict[int, Floats], dict[int, Floats]]:
        """Column -> its own thresholds by settled batches: of those from before, and of all."""
        return settled(self.then.pool, until=self.then.when), settled(self.then.pool)

    def _batches(self, column: int) -> tuple[list[Batch], list[Batch]]:
        """The settled batches of draws with replacement of an earlier run, from before, and those
        of the run.
        """
        ended = [batch for batch in self._ended if batch.is_settled]
        before = [b for b in ended if b.column == column and b.drawn_at <= self.then.when]
        return before, [b for b in ended if b.column == len(self.then.pool.systems) - 1]

    @cached_property
    def _ended(self) -> list[Batch]:
        """The batches of draws with replacement so far."""
        return replace(self.then, when=clock.now()).batches
