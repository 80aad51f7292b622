"""Stores the mentions of a knowledge base in memory, in some 50 bytes a mention. Maps from 64-bit
hashes to small numbers take 12 bytes an entry, a sixth of a dict of ints.
"""

from array import array
from typing import NamedTuple

from formats.splitting import Span

_MASK = (1 << 64) - 1
Key = tuple[int, ...]


class CompactMap:
    """A map from keys to numbers that stores only the 64-bit hash of a key (open addressing, at
    most two thirds full).

    The parts of a key must not be negative, since Python gives -1 and -2 the same hash. Among two
    million keys two have the same hash with a probability of about one in ten million.
    """

    __slots__ = ("_hashes", "_limit", "_mask", "_size", "_values")

    def __init__(self) -> None:
        self._allocate(1 << 10)

    def _allocate(self, slots: int) -> None:
        self._hashes = array("Q", bytes(8 * slots))
        self._values = array("I", bytes(4 * slots))
        self._mask = slots - 1
        self._limit = slots * 2 // 3
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, key: Key, value: int) -> int:
        """Return the previous value of the key; -1 if the key is new and now has this value."""
        hashed = hash(key) & _MASK or 1
        hashes, mask = self._hashes, self._mask
        at = hashed & mask
        while found := hashes[at]:
            if found == hashed:
                return self._values[at]
            at = at + 1 & mask
        hashes[at] = hashed
        self._values[at] = value
        self._size += 1
        if self._size > self._limit:
            self._grow()
        return -1

    def get(self, key: Key) -> int:
        """Return the value of the key; -1 if there is none."""
        hashed = hash(key) & _MASK or 1
        hashes, mask = self._hashes, self._mask
        at = hashed & mask
        while found := hashes[at]:
            if found == hashed:
                return self._values[at]
            at = at + 1 & mask
        return -1

    def _grow(self) -> None:
        old = zip(self._hashes, self._values, strict=True)
        self._allocate(len(self._hashes) * 2)
        hashes, values, mask = self._hashes, self._values, self._mask
        for hashed, value in old:
            if hashed:
                at = hashed & mask
                while hashes[at]:
                    at = at + 1 & mask
                hashes[at] = hashed
                values[at] = value
                self._size += 1


_CACHED = 20_000
_BITS = 30
_LOW = (1 << _BITS) - 1
_NAME = 1 << 60


class Mentions(NamedTuple):
    """The mentions of one entity in one document."""

    spans: tuple[Span, ...]
    """Sorted, without duplicates."""
    canonical: Span
    """The canonical mention; the first longest name (or else mention) if the file states none."""
    is_named: bool
    """Whether the file states the canonical mention."""


class MentionStore:
    """Mentions by entity and document, both as small numbers.

    The mentions of one entity in one document are a linked list of rows: a map has the first row,
    and each row has the next one.
    """

    def __init__(self) -> None:
        self.row = -1
        """The row of the most recently added mention."""
        self._first = CompactMap()
        self._canonical = CompactMap()
        self._owner = CompactMap()
        self._spans = array("Q")
        self._next = array("I")
        self._cache: dict[tuple[int, int], Mentions | None] = {}

    def __len__(self) -> int:
        return len(self._spans)

    def add(self, entity: int, document: int, span: Span, is_name: bool) -> int:
        """Add a mention, and return the entity that already had a mention at this span; -1 if none
        had.
        """
        packed = span[0] << _BITS | span[1] | (_NAME if is_name else 0)
        spans, following = self._spans, self._next
        row = len(spans)
        first = self._first.add((entity, document), row)
        if first != -1:
            # The latest row goes in behind the first one, whose number is in the map for good. Most
            # canonical mentions follow the line that says that they are mentions; they need no row
            # of their own.
            latest = following[first] - 1 if following[first] else first
            if spans[latest] == packed:
                self.row = latest
                return -1
            following.append(following[first])
            following[first] = row + 1
        else:
            following.append(0)
        spans.append(packed)
        self.row = row
        owner = self._owner.add((document, *span), entity)
        return -1 if owner == entity else owner

    def add_canonical(self, entity: int, document: int, span: Span) -> Span | None:
        """Make the last added mention canonical, and return the entity's different canonical
        mention in the document, if it had one; otherwise None.

        Must be called right after `add`.
        """
        earlier = self._canonical.add((entity, document), self.row)
        if earlier == -1:
            return None
        first = _unpack_span(self._spans[earlier])
        return None if first == span else first

    def remove(self, row: int) -> None:
        """Remove the mention of this row."""
        self._spans[row] = 0

    def mentions_of_entity(self, entity: int, document: int) -> Mentions | None:
        """Return the entity's mentions in the document; None if there are none."""
        key = (entity, document)
        try:
            return self._cache[key]
        except KeyError:
            if len(self._cache) >= _CACHED:
                self._cache.clear()
            found = self._cache[key] = self._find_mentions(key)
            return found

    def _find_mentions(self, key: tuple[int, int]) -> Mentions | None:
        chain = self._rows_in_chain(key)
        if not chain:
            return None
        spans = (
            (_unpack_span(chain[0]),)
            if len(chain) == 1
            else tuple(sorted(set(map(_unpack_span, chain))))
        )
        row = self._canonical.get(key)
        if row != -1 and self._spans[row]:
            return Mentions(spans, _unpack_span(self._spans[row]), True)
        return Mentions(spans, _unpack_span(max(chain, key=_name_and_length_key)), False)

    def _rows_in_chain(self, key: tuple[int, int]) -> list[int]:
        row = self._first.get(key)
        rows = []
        while row != -1:
            if self._spans[row]:
                rows.append(self._spans[row])
            row = self._next[row] - 1
        return rows


def _unpack_span(packed: int) -> Span:
    return packed >> _BITS & _LOW, packed & _LOW


def _name_and_length_key(packed: int) -> tuple[bool, int, int]:
    begin, end = _unpack_span(packed)
    return packed >= _NAME, end - begin, -begin
