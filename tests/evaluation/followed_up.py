"""A small world whose documents are read and followed up: one system before, one after."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np

from annotation.questions import follow_up
from kbpo.corpus.models import Document
from kbpo.instances.models import Instance, Target
from kbpo.sampling.documents.draw import settle_documents
from kbpo.sampling.models import FollowUp
from kbpo.submissions.models import Submission
from scoring.data import Data
from tests.conftest import Toy
from tests.evaluation.world import World

PI, DOCUMENTS, READ = 0.4, 12, 5
MOST = Decimal(10_000)


def marked(one: Instance) -> bool:
    """What readers mark of what is true."""
    return one.pk % 3 != 0


def early(one: Instance) -> bool:
    """What the first system predicts."""
    return one.pk % 5 != 0


def late(one: Instance) -> bool:
    """What the late system predicts: some of it nobody had predicted."""
    return one.pk % 5 in (0, 1)


class FollowedUp:
    """Twelve documents of which five are read and followed up; one system before, one after."""

    def __init__(self, toy: Toy) -> None:
        self.world = World(toy, n_documents=DOCUMENTS)
        self.first = self.world.system("first", early)
        self.world.answer(self.world.sample(self.first, PI))
        self.documents = self.world.documents[:READ]
        self.read_whole(self.documents)

    def read_whole(self, documents: list[Document]) -> None:
        self.world.read_in_full(documents, marked)
        settle_documents(self.world.track, [one.pk for one in documents])

    def follow_up(self) -> FollowUp:
        """An order, everything that it asks about answered."""
        row = follow_up.order_follow_up(self.world.track, MOST)
        self.answer(row)
        follow_up.tick()
        row.refresh_from_db()
        assert row.settled_at is not None and row.closed_at is not None
        return row

    def answer(self, row: FollowUp, *, but: Iterable[int] = ()) -> None:
        asked = set(row.targets.values_list("target", flat=True)) - set(but)
        self.world.answer(list(Target.objects.filter(pk__in=asked)))

    def add_late(self) -> Submission:
        row = self.world.system("late", late, team="Neural")
        self.world.answer(self.world.sample(row, PI))
        return row

    def targets(self, predicts: Any) -> set[int]:
        return {one.target_id for one in self.world.instances if predicts(one)}

    @property
    def inside(self) -> set[int]:
        read = {one.pk for one in self.documents}
        return {one.target_id for one in self.world.instances if one.document_id in read}


def of_targets(data: Data, values: np.ndarray) -> dict[int, Any]:
    return dict(zip(data.pool.target_id.tolist(), np.asarray(values).tolist(), strict=True))
