"""A zip file that is sent while it is made: nothing of it is kept, on disk or in memory."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

MADE = (1980, 1, 1, 0, 0, 0)
"""When every file in it was made, as it says: the same contents are the same bytes"""


class _Sent(io.RawIOBase):
    """What a zip file is written to whose beginning is sent before its end is made."""

    def __init__(self) -> None:
        self.waiting = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.waiting += data
        return len(data)

    def taken(self) -> bytes:
        """Return what was written since it was last taken."""
        part = bytes(self.waiting)
        self.waiting.clear()
        return part


def zipped(files: Iterable[tuple[str, Iterable[bytes]]]) -> Iterator[bytes]:
    """Yield a zip file of files that have a name and blocks; what is gzipped is not packed
    again.
    """
    sent = _Sent()
    with zipfile.ZipFile(sent, "w") as folder:
        for name, blocks in files:
            entry = zipfile.ZipInfo(name, MADE)
            entry.compress_type = (
                zipfile.ZIP_STORED if name.endswith(".gz") else zipfile.ZIP_DEFLATED
            )
            with folder.open(entry, "w", force_zip64=True) as target:
                for block in blocks:
                    target.write(block)
                    if part := sent.taken():
                        yield part
            yield sent.taken()
    yield sent.taken()
