"""A marketplace that is a cork board in this process: whoever passes by answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from annotation.platforms.base import Account, Advert, Capabilities, Platform, Seen
from annotation.platforms.proof import sign_form
from annotation.workers.worker import worker_handle
from kbpo import clock

if TYPE_CHECKING:
    from annotation.models import HIT, Assignment

DAY = timedelta(days=1)


class Corkboard(Platform):
    """Notes by their token, answers by the note's id, and what was decided about each."""

    name: ClassVar[str] = "corkboard"
    capabilities: ClassVar[Capabilities] = Capabilities(
        "A cork board", fee_rate=Decimal("0.1"), teaches_in_frame=False, offered_for=DAY
    )
    notes: ClassVar[dict[str, HIT]] = {}
    answers: ClassVar[dict[str, list[dict[str, Any]]]] = {}
    decided: ClassVar[dict[str, str]] = {}

    def account(self) -> Account | None:
        return Account("cork://wall", real=False, usable=True, sentence="Pins, no money.")

    def publish(self, hit: HIT, advert: Advert) -> str:
        self.notes[hit.token] = hit
        return f"note-{hit.pk}"

    def offer(
        self, hit: HIT, until: datetime, *, additional_assignments: int = 0, key: str = ""
    ) -> None:
        """Do nothing: a note hangs until it is taken down."""

    def take_down(self, hit: HIT, *, delete: bool = False) -> None:
        if delete:
            del self.notes[hit.token]

    def survey(self, hit: HIT | None = None) -> Iterator[Seen]:
        now = clock.now()
        for token, note in self.notes.items():
            if hit is None or hit.token == token:
                most, n = note.max_assignments, len(self.answers.get(f"note-{note.pk}", ()))
                status = "done" if n == most else "open"
                yield Seen(f"note-{note.pk}", token, status, most, n, now + DAY, now)

    def collect(self, hit: HIT) -> Iterator[dict[str, Any]]:
        for answer in self.answers.get(hit.external_id, ()):
            status = self.decided.get(answer["external_id"], "submitted")
            yield answer | {"status": status}

    def decide(self, assignment: Assignment, refused: str | None = None) -> None:
        self.decided[assignment.external_id] = "approved" if refused is None else "rejected"

    def balance(self) -> dict[str, Decimal]:
        return {"available": Decimal(100), "on_hold": Decimal(0)}

    @classmethod
    def answer_all(cls, who: str, raw: dict[str, list[str]]) -> None:
        """Somebody answers every note on the board."""
        now = clock.now()
        for note in cls.notes.values():
            external_id = f"{who} {note.pk}"
            proof = sign_form(note.pk, external_id, worker_handle(cls.name, who))
            cls.answers.setdefault(f"note-{note.pk}", []).append(
                {
                    "external_id": external_id,
                    "worker_id": who,
                    "fields": {"proof": proof, "answer": json.dumps(raw)},
                    "accepted_at": now,
                    "submitted_at": now,
                }
            )
