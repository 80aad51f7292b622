"""How simulated workers err where they err: at random, or with a bias of which it is known where it
leads.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

NONE, YES, PLAUSIBLE = "none", "yes", "plausible"
BIASES = {
    NONE: "one relation too many or too few, any of them",
    YES: "one relation too many: they say yes too often",
    PLAUSIBLE: (
        "the relation beside the true one, or the commonest where none holds: all who err"
        " say the same"
    ),
}
"""Bias -> what a mistake is"""


def mistaken(
    offered: Sequence[str], holds: Collection[str], bias: str, rng: random.Random
) -> list[str]:
    """Return what somebody says who errs about a pair, of the relations that a page offers."""
    not_holding = [relation for relation in offered if relation not in holds]
    if bias == YES and not_holding:
        return _with(offered, holds, rng.choice(not_holding))
    if bias == PLAUSIBLE and not_holding:
        true = next((place for place, relation in enumerate(offered) if relation in holds), None)
        if true is None:
            return [offered[0]]
        beside = min(not_holding, key=lambda other: abs(offered.index(other) - true))
        return _with(offered, set(holds) - {offered[true]}, beside)
    part = rng.choice(offered)
    return [relation for relation in offered if (relation in holds) != (relation == part)]


def other_link(candidates: Sequence[str], chosen: str, bias: str, rng: random.Random) -> str:
    """Return a wrong candidate for what a name refers to, if there is one: any, or the first on the
    page.
    """
    wrong_candidates = [candidate for candidate in candidates if candidate != chosen]
    if not wrong_candidates:
        return chosen
    return wrong_candidates[0] if bias == PLAUSIBLE else rng.choice(wrong_candidates)


def _with(offered: Sequence[str], holds: Collection[str], wrong: str) -> list[str]:
    return [part for part in offered if part in holds or part == wrong]
