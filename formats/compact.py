"""A map from 64-bit hashes to small numbers that takes 12 bytes a slot, a sixth of what a dict of
ints takes.
"""

from array import array

_MASK = (1 << 64) - 1
Key = tuple[int, ...]


class CompactMap:
    """Numbers by key, where only the 64-bit hash of a key is kept (open addressing, at most two
    thirds full).

    The parts of a key are not negative: Python gives -1 and -2 one hash.
    Among two million keys two have the same hash with a probability of about one in ten million.
    """

    __slots__ = ("_hashes", "_limit", "_mask", "_size", "_values")

    def __init__(self) -> None:
        self._allot(1 << 10)

    def _allot(self, slots: int) -> None:
        self._hashes = array("Q", bytes(8 * slots))
        self._values = array("I", bytes(4 * slots))
        self._mask = slots - 1
        self._limit = slots * 2 // 3
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, key: Key, value: int) -> int:
        """Return the value that the key had before, or -1 if it is new and now has this one."""
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
        """Return the value of the key, or -1."""
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
        self._allot(len(self._hashes) * 2)
        hashes, values, mask = self._hashes, self._values, self._mask
        for hashed, value in old:
            if hashed:
                at = hashed & mask
                while hashes[at]:
                    at = at + 1 & mask
                hashes[at] = hashed
                values[at] = value
                self._size += 1
