"""Addresses of the pages: every page family lists its own."""

from kbpo.web.desk import (
    annotations,
    batches,
    corpora,
    describe,
    forms,
    home,
    judgments,
    log,
    money,
    reading,
    scores,
    tracks,
)
from kbpo.web.desk.people import accounts, platforms, requests, workers
from kbpo.web.desk.quality import experts, measures
from kbpo.web.public import (
    ask,
    board,
    client,
    compare,
    documents,
    health,
    metrics,
    notices,
    people,
    prose,
    track,
)
from kbpo.web.research import explore, ledger, missed, runs, submissions, upload

PUBLIC = (
    health,
    board,
    track,
    client,
    compare,
    documents,
    metrics,
    prose,
)
RESEARCH = (runs, ledger, submissions, explore, missed, upload)
ACCOUNT = (people, notices, ask)
DESK = (
    home,
    batches,
    workers,
    accounts,
    requests,
    experts,
    measures,
    log,
    platforms,
    money,
)
OF_TRACKS = (tracks, corpora, forms, annotations, judgments, describe, reading, scores)
urlpatterns = [
    pattern
    for family in (*PUBLIC, *RESEARCH, *ACCOUNT, *DESK, *OF_TRACKS)
    for pattern in family.urlpatterns
]
