"""How fast a knowledge base is read, and in how much memory: prints lines a second and peak memory.

usage: python benchmarks/read_formats.py [RELATIONS ...]        (default: 100000 1000000)

Each size runs in a process of its own, on a generated TAC KBP file (gzipped) over a generated
corpus. The memory is that of reading: what the corpus itself takes is subtracted.
"""

import gzip
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from formats.doors import read_claims
from formats.limits import Limits
from formats.lookup import DocumentView, MemoryCorpus
from formats.messages import Report
from formats.schema import shipped_schema

SENTENCES, WORDS, NAMES = 8, 20, 4
RELATIONS_PER_DOCUMENT = 50
PREDICATES = (
    "per:employee_or_member_of",
    "per:schools_attended",
    "per:organizations_founded",
    "per:holds_shares_in",
)


def make_document(number: int) -> DocumentView:
    """A document of eight sentences, in each of which every fifth word is a name of seven
    letters.
    """
    begins, ends, sentence_begins, sentence_ends, words = [], [], [], [], []
    at = 0
    for sentence in range(SENTENCES):
        sentence_begins.append(at)
        for word in range(WORDS):
            words.append(
                f"N{(number * 7 + sentence * NAMES + word // 5) % 1_000_000:06d}"
                if word % 5 == 0
                else "word"
            )
            begins.append(at)
            ends.append(at + len(words[-1]))
            at = ends[-1] + 1
        sentence_ends.append(at - 1)
    return DocumentView(
        f"DOC_{number:07d}", " ".join(words), begins, ends, sentence_begins, sentence_ends
    )


def write_kb(path: Path, documents: list[DocumentView], relations: int) -> int:
    """The number of lines of a knowledge base with about so many relations, written to the path."""
    rng = random.Random(1)
    count = 0
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as file:
        file.write("generated\n")
        for number, document in enumerate(documents):
            names = range(0, SENTENCES * WORDS, 5)
            lines = []
            for place in names:
                begin, end = document.token_begins[place], document.token_ends[place]
                entity, where = _entity(number, place), f"{document.id}:{begin}-{end - 1}"
                gloss = document.text[begin:end]
                lines.append(f":E{entity}\ttype\t{'PER' if place % 10 else 'ORG'}\n")
                lines.append(f':E{entity}\tmention\t"{gloss}"\t{where}\n')
                lines.append(f':E{entity}\tcanonical_mention\t"{gloss}"\t{where}\n')
            for at in range(
                min(RELATIONS_PER_DOCUMENT, relations - number * RELATIONS_PER_DOCUMENT)
            ):
                subject = rng.choice(names[1::2])
                object_ = rng.choice(names[0::2])
                predicate = PREDICATES[at % len(PREDICATES)]
                where = f"{document.id}:0-{len(document.text) - 1}"
                confidence = rng.random()
                lines.append(
                    f":E{_entity(number, subject)}\t{predicate}"
                    f"\t:E{_entity(number, object_)}\t{where}\t"
                    f"{confidence:.4f}\n"
                )
            count += len(lines)
            file.writelines(lines)
    return count


def _entity(document: int, place: int) -> int:
    """The entity at a place: four in ten are shared by ten documents."""
    return (
        (document // 10 if place % 25 < 10 else document) * 1_000
        + place
        + (500 if place % 25 < 10 else 0)
    )


def peak() -> float:
    """The largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(relations: int) -> None:
    """Nothing; prints one line of results."""
    documents = [make_document(number) for number in range(-(-relations // RELATIONS_PER_DOCUMENT))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "generated.gz"
        lines = write_kb(path, documents, relations)
        corpus, report = MemoryCorpus(documents), Report()
        before, start, cpu = peak(), time.perf_counter(), time.process_time()
        claims = sum(
            1 for _ in read_claims(path, corpus, shipped_schema("tac_kbp"), Limits(), report)
        )
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    print(
        f"{relations:>9,} relations in {lines:,} lines: {seconds:.1f} s ({cpu:.1f} s of one core),"
        f" {relations / cpu:,.0f} relations/s, {lines / cpu:,.0f} lines/s; {peak() - before:.0f}"
        f" MB; {claims:,} claims, messages {dict(report.by_code)}"
    )


def main() -> None:
    """Nothing; measures each size in a process of its own, so that one peak does not hide the
    next.
    """
    if sys.argv[1:2] == ["--one"]:
        return measure(int(sys.argv[2]))
    for relations in sys.argv[1:] or ("100000", "1000000"):
        subprocess.run([sys.executable, __file__, "--one", relations], check=True)
    return None


if __name__ == "__main__":
    main()
