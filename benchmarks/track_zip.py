"""How long the file of all of a track takes to send, and how much memory: texts, names in them,
baseline and its output, which is made while it is sent and kept: by itself it is sent again.

usage: python -m benchmarks.track_zip [--documents 100000] [--mentions 6]

The corpus is made up (benchmarks/explorer.py: sixty words a text) in a database of its own, on the
server that the settings name (our own one if none). The file goes through Django's client, and what
is read of it is thrown away: no network is timed.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from typing import Any

from benchmarks.explorer import PLACE, build, own_database

MENTIONS = """
    INSERT INTO corpus_mention (document_id, begin, "end", type, link)
    SELECT d.id, k * %(place)s, k * %(place)s + 9, (ARRAY['PER', 'ORG', 'GPE'])[1 + k %% 3], ''
    FROM corpus_document d, generate_series(0, %(each)s - 1) k ORDER BY d.id, k
"""


def peak() -> float:
    """The most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(track: Any) -> None:
    """Nothing; prints what the whole file took, then each large one in it by itself."""
    from django.test import Client
    from django.urls import reverse

    from kbpo.web.public.whole import large_files

    before, start, worked = peak(), time.perf_counter(), time.process_time()
    blocks = iter(Client().get(reverse("track-zip", args=[track.slug])))
    size = len(next(blocks))
    first = time.perf_counter() - start
    size += sum(map(len, blocks))
    print(
        f"all.zip: {size / 1e6:.1f} MB, begins after {first:.2f} s, ends after"
        f" {time.perf_counter() - start:.1f} s ({time.process_time() - worked:.1f} s of this"
        f" process), peak {peak():.0f} MB, {before:.0f} before; load {os.getloadavg()[0]:.1f}"
    )
    for name, made in large_files(track):
        start = time.perf_counter()
        size = sum(map(len, made))
        print(f"  {name}: {size / 1e6:.1f} MB in {time.perf_counter() - start:.1f} s")


def main() -> None:
    """Nothing; builds the world in a database of its own, measures, and takes it away."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--mentions", type=int, default=6)
    args = parser.parse_args()
    with own_database("track_zip"):
        from django.db import connection

        track = build(args.documents, args.documents, 100).track
        with connection.cursor() as cursor:
            cursor.execute(MENTIONS, {"place": PLACE, "each": args.mentions})
            cursor.execute("ANALYZE")
        measure(track)


if __name__ == "__main__":
    main()
