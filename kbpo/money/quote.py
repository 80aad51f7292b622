"""An estimate before anything is launched: what questions cost, how long they take, whether the
caps allow it.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from kbpo.money.models import Price
from kbpo.money.purpose import Purpose
from kbpo.money.spend import ZERO, allowance

MOST = 10_000_000


@dataclass(frozen=True)
class Quote:
    """What questions cost at most. `left` is what the caps leave (None: no cap); `affordable` how
    many fit under it.
    """

    questions: int
    people: int
    reward: Decimal
    fee: Decimal
    seconds: int
    left: Decimal | None
    affordable: int | None

    @property
    def total(self) -> Decimal:
        return self.reward + self.fee

    @property
    def fits(self) -> bool:
        return self.left is None or self.total <= self.left


def quote(price: Price, questions: int, people: int) -> Quote:
    """Return the estimate for that many questions, each answered by that many people. Raises
    ValueError.
    """
    if not 1 <= questions <= MOST or not 1 <= people <= 100:
        raise ValueError(f"Give 1 to {MOST} questions, and 1 to 100 people for each.")
    answers = questions * people
    reward, total = price.most * answers, price.per_answer * answers
    left = allowance(price.track, None, Purpose("pilot")).left
    each = price.per_answer * people
    affordable = None if left is None else int(left // each) if each > ZERO else None
    return Quote(
        questions, people, reward, total - reward, answers * price.seconds, left, affordable
    )
