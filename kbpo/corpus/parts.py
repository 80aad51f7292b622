"""Draws the development part of a corpus: judgments in it are shown, and count for nothing."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

FEWEST = 100
"""A corpus with fewer documents or inputs has no development part, unless its file names one."""


def development_part(
    groups: Sequence[Sequence[str]], key: str, *, share: float, least: int, most: int
) -> set[str]:
    """Return the keys of the documents or inputs that become the development part.

    Parameters
    ----------
    groups : sequence of sequences of str
        Keys of documents or inputs. Those of one group have the same source and lie in one part.
    key : str
        The secret of the corpus. The draw uses a key of its own, derived from it: the random
        numbers of targets stay unknown to whoever knows the parts.
    share : float
        The wanted share, in [0, 1); 0 for no development part.
    least, most : int
        Bounds of the number of documents or inputs.
    """
    n = sum(map(len, groups))
    if n < FEWEST or share <= 0:
        return set()
    wanted = min(max(round(share * n), least), most)
    own_key = hmac.digest(key.encode(), b"parts", "sha256")

    def place(group: Sequence[str]) -> bytes:
        return hmac.digest(own_key, min(group).encode(), "sha256")

    chosen: set[str] = set()
    for group in sorted(groups, key=place):
        if len(chosen) + len(group) <= wanted:
            chosen.update(group)
    return chosen
