"""How fast the explorer answers over a large run: p50, p95, time of processors and queries of each
kind of request.

usage: python -m benchmarks.explorer [--predictions 1000000] [--documents 100000] [--judged 5000]
                                     [--repeats 20]

The run, a second one that predicts a tenth of it, and their judgments are made up in a database of
their own, on the server that the settings name (our own one if none). Requests go through Django's
client, so that what is timed is the server's work alone: access, queries, page. The first request
is told apart: it is the one that finds nothing kept. Words of the texts are as frequent as words
are (the r-th by 1/r), so that searches find a few texts, or almost all.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

WORDS = 20_000
WORDS_A_TEXT = 60
PLACE = 20
"""Characters from one pair of mentions to the next; each mention is a word, of nine"""


def texts(n: int, rng: np.random.Generator) -> Iterator[str]:
    """Yields texts whose words are spread as Zipf has it."""
    weight = 1 / np.arange(1, WORDS + 1)
    edges = np.cumsum(weight / weight.sum())
    vocabulary = np.array([f"word{at:05d}" for at in range(WORDS)])
    for start in range(0, n, 1000):
        size = min(1000, n - start)
        draws = np.searchsorted(edges, rng.random((size, WORDS_A_TEXT))).clip(0, WORDS - 1)
        for row in vocabulary[draws]:
            yield " ".join(row.tolist()) + "."


@contextmanager
def own_database(name: str) -> Iterator[None]:
    """Django with a database of this name, beside that of the tests; it is gone at the end."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbpo.settings")
    import django

    django.setup()
    from django.conf import settings
    from django.db import connection
    from django.test.utils import setup_databases, teardown_databases

    # The environment of tests is not set up: it copies the context of every template that is drawn.
    settings.ALLOWED_HOSTS = ["testserver"]
    connection.settings_dict["TEST"]["NAME"] = name
    databases = setup_databases(verbosity=0, interactive=False)
    try:
        yield
    finally:
        teardown_databases(databases, verbosity=0)


def build(documents: int, predictions: int, judged: int) -> Any:
    """A scored submission with so many predictions, of which so many are judged."""
    from django.db import connection

    from kbpo import clock
    from kbpo.accounts.models import Team, User
    from kbpo.corpus.copy import copy
    from kbpo.corpus.models import Corpus, Predicate
    from kbpo.submissions.models import Submission
    from kbpo.submissions.tally import count
    from kbpo.tracks.models import Track

    names = [f"rel:{at:02d}" for at in range(41)]
    schema = {
        "entity_types": [{"name": name} for name in ("PER", "ORG", "GPE")],
        "predicates": [{"name": name, "label": f"relation {name}", "types": []} for name in names],
    }
    corpus = Corpus.objects.create(name="Large", slug="large", schema=schema, n_documents=documents)
    Predicate.objects.bulk_create(
        Predicate(corpus=corpus, name=name, position=at) for at, name in enumerate(names)
    )
    track = Track.objects.create(corpus=corpus, name="Large", slug="large", status="open")
    columns = (
        "corpus_id",
        "key",
        "title",
        "date",
        "text",
        "token_begin",
        "token_end",
        "sentence_begin",
        "sentence_end",
    )
    made = texts(documents, np.random.default_rng(1))
    rows = (
        (corpus.pk, f"d{at:06d}", f"Text {at}", "", text, [], [], [0], [len(text)])
        for at, text in enumerate(made)
    )
    copy("corpus_document", columns, rows)
    submissions = []
    for name in ("first", "second"):
        team = Team.objects.create(name=name, slug=name)
        user = User.objects.create_user(name, is_researcher=True)
        team.members.add(user)
        row = Submission.objects.create(
            track=track,
            team=team,
            user=user,
            name="run",
            status="scored",
            file="x",
            file_size=1,
            file_name="x",
            file_digest=name,
            confirmed_at=clock.now(),
            sampled_at=clock.now(),
            scored_at=clock.now(),
            counts={"relations": predictions},
        )
        submissions.append(row)
    parameters = {
        "corpus": corpus.pk,
        "each": predictions // documents,
        "place": PLACE,
        "first": submissions[0].pk,
        "second": submissions[1].pk,
        "rel": Predicate.objects.order_by("pk").values_list("pk", flat=True)[0],
        "share": judged / predictions,
    }
    with connection.cursor() as cursor:
        for statement in STATEMENTS:
            cursor.execute(statement, parameters)
        cursor.execute("ANALYZE")
    for row in submissions:
        count(row).save()
    return submissions[0]


STATEMENTS = (
    """
    INSERT INTO instances_target (corpus_id, document_id, kind, a_begin, a_end, b_begin, b_end,
        key, u)
    SELECT d.corpus_id, d.id, 'pair', k * %(place)s, k * %(place)s + 9, k * %(place)s + 10,
        k * %(place)s + 19, md5(d.id || '|' || k)::uuid, random()
    FROM corpus_document d, generate_series(0, %(each)s - 1) k ORDER BY d.id, k
    """,
    """
    INSERT INTO instances_instance (target_id, document_id, subject_begin, subject_end,
        predicate_id,
        object_begin, object_end)
    SELECT t.id, t.document_id, a_begin, a_end, %(rel)s + floor(41 ^ random())::int - 1,
        b_begin, b_end
    FROM instances_target t ORDER BY t.id
    """,
    """
    INSERT INTO submissions_prediction (submission_id, instance_id, predicate_id, confidence,
        subject_type, object_type, subject_canonical_begin, subject_canonical_end,
        object_canonical_begin, object_canonical_end, subject_link, object_link, subject_entity,
        object_entity, same_predicate, same_subject, subject_facts, line)
    SELECT s.id, i.id, i.predicate_id, round(random()::numeric, 3),
        (ARRAY['PER', 'ORG', 'GPE'])[1 + i.id %% 3], 'GPE', i.subject_begin, i.subject_end,
        i.object_begin, i.object_end, '', '', 0, 1, 1, 1, 1, i.id
    FROM (VALUES (%(first)s, 1.0), (%(second)s, 0.1)) s (id, share), instances_instance i
    WHERE s.share = 1 OR random() < s.share ORDER BY s.id, i.id
    """,
    """
    INSERT INTO instances_label (target_id, value, source, method, n, disagreement, origin,
        created_at)
    SELECT i.target_id, jsonb_build_object('shown', jsonb_build_array(r.name || '>'), 'holds',
        CASE WHEN random() < 0.6 THEN jsonb_build_array(r.name || '>') ELSE '[]'::jsonb END,
        'votes', jsonb_build_object(r.name || '>', floor(random() * 4)::int)),
        'crowd', 'majority', 3, 0, 'question:' || i.id, now() - interval '1 hour'
    FROM instances_instance i JOIN corpus_predicate r ON r.id = i.predicate_id
    WHERE random() < %(share)s
    """,
    """
    INSERT INTO instances_target (corpus_id, document_id, kind, a_begin, a_end, b_begin, b_end,
        key, u)
    SELECT %(corpus)s, t.document_id, 'mention', m.begin, m.begin + 9, 0, 0,
        md5(t.document_id || 'm' || m.begin)::uuid, random()
    FROM instances_label l JOIN instances_target t ON t.id = l.target_id
    CROSS JOIN LATERAL (VALUES (t.a_begin), (t.b_begin)) m (begin)
    """,
    """
    INSERT INTO instances_label (target_id, value, source, method, n, disagreement, origin,
        created_at)
    SELECT t.id, jsonb_build_object('canonical', jsonb_build_array(a_begin, a_end), 'type', 'PER',
        'votes', jsonb_build_object(a_begin || '-' || a_end, 3)), 'crowd', 'majority', 3, 0,
        'mention:' || t.id, now() - interval '1 hour'
    FROM instances_target t WHERE t.kind = 'mention'
    """,
)


def requests(row: Any, rng: np.random.Generator) -> dict[str, Callable[[], str]]:
    """What is asked for, each time with other values."""
    first, n = row.tally.first, row.counts["relations"]
    page, api = f"/submissions/{row.pk}/explore/", f"/api/submissions/{row.pk}/predictions/"

    def somewhere() -> int:
        return int(first + rng.integers(n))

    def word(low: int, high: int) -> str:
        return f"word{rng.integers(low, high):05d}"

    def relation(low: int, high: int) -> str:
        return f"rel:{rng.integers(low, high):02d}"

    def after_a_label() -> str:
        judge_another()
        return page

    return {
        "first page": lambda: page,
        "first page, a new label": after_a_label,
        "a page in the middle": lambda: f"{page}?after={somewhere()}",
        "permalink": lambda: f"{page}?p={somewhere()}",
        "a frequent relation": lambda: f"{page}?relation={relation(0, 3)}",
        "a rare relation": lambda: f"{page}?relation={relation(35, 41)}",
        "relation and type": lambda: f"{page}?relation={relation(0, 41)}&type=ORG",
        "most confident first": lambda: f"{page}?sort=sure&after={somewhere()}",
        "confidence, least first": lambda: f"{page}?confidence=high&sort=unsure",
        "not judged": lambda: f"{page}?verdict=unjudged&after={somewhere()}",
        "wrong": lambda: f"{page}?verdict=wrong",
        "wrong relation, divided": lambda: f"{page}?part=relation&votes=split",
        "only this system": lambda: f"{page}?who=alone&after={somewhere()}",
        "one document": lambda: f"{page}?document=d{rng.integers(1000):06d}",
        "an entity": lambda: f"{page}?entity={word(0, WORDS)}",
        "an entity, frequent word": lambda: f"{page}?entity={word(0, 20)}&verdict=unjudged",
        "API, wrong": lambda: f"{api}?verdict=wrong&limit=50",
        "API, a page": lambda: f"{api}?after={somewhere()}&limit=50",
        "search: a rare word": lambda: f"{page}?q={word(5000, WORDS)}",
        "search: a frequent word": lambda: f"{page}?q={word(0, 20)}",
        "search: two words": lambda: f"{page}?q={word(0, 300)}+{word(0, 300)}",
        "search: wrong ones": lambda: f"{page}?q={word(0, 2000)}&verdict=wrong",
    }


def judge_another() -> None:
    """Nothing; a pair that nobody was asked about gets a label, its mentions as well."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO instances_label (target_id, value, source, method, n, disagreement,"
            " origin, created_at) SELECT t.id, jsonb_build_object('shown', jsonb_build_array("
            "r.name || '>'), 'holds', jsonb_build_array(r.name || '>')), 'crowd', 'majority', 3, 0,"
            " 'another:' || t.id, now() FROM instances_target t JOIN instances_instance i ON"
            " i.target_id = t.id JOIN corpus_predicate r ON r.id = i.predicate_id WHERE t.id >="
            " (SELECT min(id) + floor(random() * 100000)::int FROM instances_target) AND"
            " t.kind = 'pair' AND NOT EXISTS (SELECT 1 FROM instances_label l WHERE"
            " l.target_id = t.id) ORDER BY t.id LIMIT 1"
        )


def measure(row: Any, repeats: int) -> None:
    """Nothing; prints a line for each kind of request."""
    from django.core.cache import cache
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from kbpo.accounts.models import Token

    client = Client(headers={"Authorization": f"Token {Token.issue(row.user, 'speed')[1]}"})
    client.force_login(row.user)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        backend = int(cursor.fetchone()[0])
    columns = ("p50, ms", "p95, ms", "CPU, ms", "first", "queries")
    print(f"{'request':<28}" + "".join(f"{one:>9}" for one in columns))
    for name, address in requests(row, np.random.default_rng(2)).items():
        cache.clear()
        times, worked = [], 0.0
        for turn in range(repeats + 1):
            asked = address()
            if turn == 1:
                worked = processor_time(backend)
            start = time.perf_counter()
            answer = client.get(asked)
            times.append(1000 * (time.perf_counter() - start))
            assert answer.status_code == 200, (name, answer.status_code)
        worked = 1000 * (processor_time(backend) - worked) / repeats
        asked = address()
        with CaptureQueriesContext(connection) as queries:
            client.get(asked)
        p50, p95 = np.percentile(times[1:], [50, 95])
        print(
            f"{name:<28}{p50:>9.0f}{p95:>9.0f}{worked:>9.0f}{times[0]:>9.0f}{len(queries):>9}",
            flush=True,
        )


def processor_time(backend: int) -> float:
    """The seconds of a processor that this process and the database's for it have had, so that a
    busy machine can be told from slow pages; without /proc, or with the database elsewhere, only
    those of this process.
    """
    stat = Path(f"/proc/{backend}/stat")
    there = stat.read_text().rpartition(")")[2].split() if stat.exists() else []
    ticks = int(there[11]) + int(there[12]) if there else 0
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Nothing; builds the world in a database of its own, measures, and takes it away."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--predictions", type=int, default=1_000_000)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--judged", type=int, default=5_000)
    parser.add_argument("--repeats", type=int, default=20)
    args = parser.parse_args()
    with own_database("explorer"):
        start = time.perf_counter()
        row = build(args.documents, args.predictions, args.judged)
        print(
            f"{args.predictions:,} predictions, {args.documents:,} documents, built in"
            f" {time.perf_counter() - start:.0f} s; load {os.getloadavg()[0]:.1f}"
        )
        import kbpo.wsgi  # noqa: F401  # what it loads is kept from the collector, as in the service

        measure(row, args.repeats)


if __name__ == "__main__":
    main()
