"""The mentions of a knowledge base in memory: some 50 bytes a mention, however many there are."""

from array import array
from typing import NamedTuple

from formats.compact import CompactMap
from formats.splitting import Span

_CACHED = 20_000
_BITS = 30
_LOW = (1 << _BITS) - 1
_NAME = 1 << 60


class Mentions(NamedTuple):
    """The mentions of one entity in one document."""

    spans: tuple[Span, ...]
    """Sorted, each one once."""
    canonical: Span
    """The canonical mention; the first longest name (or else mention) where the file names none."""
    is_named: bool
    """True if the file names the canonical mention."""


class MentionStore:
    """Mentions by entity and document, both as small numbers.

    The mentions of one entity in one document are a chain of rows: a map gives the last row, and each row names the
    one before it.
    """

    def __init__(self) -> None:
        self._last = CompactMap()
        self._canonical = CompactMap()
        self._owner = CompactMap()
        self._spans = array("Q")
        self._before = array("I")
        self._cache: dict[tuple[int, int], Mentions | None] = {}

    def __len__(self) -> int:
        return len(self._spans)

    def add(self, entity: int, document: int, span: Span, is_name: bool) -> int:
        """The entity that has had a mention at this span before, or -1; the mention is added in any case."""
        row = len(self._spans)
        self._spans.append(span[0] << _BITS | span[1] | (_NAME if is_name else 0))
        self._before.append(0)
        last = self._last.add((entity, document), row)
        if last != -1:
            # The row goes in behind the first one of the chain, whose number is in the map for good.
            self._before[row] = self._before[last]
            self._before[last] = row + 1
        owner = self._owner.add((document, *span), entity)
        return -1 if owner == entity else owner

    def add_canonical(self, entity: int, document: int, span: Span) -> Span | None:
        """The canonical mention that the entity has in the document already, if it is another one; else None.

        To be called right after `add`: the mention that was added last is the canonical one.
        """
        row = len(self._spans)
        earlier = self._canonical.add((entity, document), row - 1)
        if earlier == -1:
            return None
        first = _unpack(self._spans[earlier])
        return None if first == span else first

    def remove(self, row: int) -> None:
        """Nothing; the mention of this row is no mention any more."""
        self._spans[row] = 0

    def of(self, entity: int, document: int) -> Mentions | None:
        """The entity's mentions in the document, None if it has none there."""
        key = (entity, document)
        try:
            return self._cache[key]
        except KeyError:
            if len(self._cache) >= _CACHED:
                self._cache.clear()
            found = self._cache[key] = self._find(key)
            return found

    def _find(self, key: tuple[int, int]) -> Mentions | None:
        chain = self._chain(key)
        if not chain:
            return None
        spans = tuple(sorted({_unpack(packed) for packed in chain}))
        row = self._canonical.get(key)
        if row != -1 and self._spans[row]:
            return Mentions(spans, _unpack(self._spans[row]), True)
        return Mentions(spans, _unpack(max(chain, key=_longest)), False)

    def _chain(self, key: tuple[int, int]) -> list[int]:
        row = self._last.get(key)
        rows = []
        while row != -1:
            if self._spans[row]:
                rows.append(self._spans[row])
            row = self._before[row] - 1
        return rows


def _unpack(packed: int) -> Span:
    return packed >> _BITS & _LOW, packed & _LOW


def _longest(packed: int) -> tuple[bool, int, int]:
    begin, end = _unpack(packed)
    return packed >= _NAME, end - begin, -begin
