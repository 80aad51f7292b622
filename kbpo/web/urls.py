"""URL patterns of the pages; every module of pages lists its own."""

from kbpo.web.desk import (
    corpora,
    describe,
    experts,
    forms,
    health,
    home,
    judgments,
    log,
    measures,
    money,
    reading,
    requests,
    tracks,
    workers,
)
from kbpo.web.public import ask, board, compare, documents, metrics, people, prose, track
from kbpo.web.research import explore, runs, submissions, teams, upload

PUBLIC = (health, board, track, prose, compare, documents, metrics)
RESEARCH = (runs, teams, submissions, explore, upload)
ACCOUNT = (people, ask)
DESK = (home, workers, requests, experts, measures, log, money)
OF_TRACKS = (tracks, corpora, forms, judgments, describe, reading)
urlpatterns = [
    pattern
    for family in (*PUBLIC, *RESEARCH, *ACCOUNT, *DESK, *OF_TRACKS)
    for pattern in family.urlpatterns
]
