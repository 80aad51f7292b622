"""Addresses of the pages: every page family lists its own."""

from __future__ import annotations

from kbpo.web.desk import (
    annotations as annotation_files,
)
from kbpo.web.desk import (
    batches,
    corpora,
    define,
    describe,
    diagnostics,
    documents,
    forms,
    home,
    judgments,
    log,
    money,
    pooling,
    reading,
    scores,
    tracks,
)
from kbpo.web.desk.people import accounts, platforms, workers
from kbpo.web.desk.quality import adjudication, aggregation, checks, experts, measures, pilots
from kbpo.web.public import (
    ask,
    board,
    client,
    compare,
    gallery,
    health,
    metrics,
    notices,
    people,
    prmse,
    prose,
    track,
)
from kbpo.web.public import (
    documents as corpus,
)
from kbpo.web.research import cited, explore, missed_page, order, runs, submissions, upload

urlpatterns = [
    *health.urlpatterns,
    *board.urlpatterns,
    *track.urlpatterns,
    *client.urlpatterns,
    *runs.urlpatterns,
    *submissions.urlpatterns,
    *cited.urlpatterns,
    *explore.urlpatterns,
    *missed_page.urlpatterns,
    *order.urlpatterns,
    *upload.urlpatterns,
    *prose.urlpatterns,
    *people.urlpatterns,
    *notices.urlpatterns,
    *ask.urlpatterns,
    *home.urlpatterns,
    *batches.urlpatterns,
    *workers.urlpatterns,
    *accounts.urlpatterns,
    *experts.urlpatterns,
    *measures.urlpatterns,
    *aggregation.urlpatterns,
    *pilots.urlpatterns,
    *adjudication.urlpatterns,
    *log.urlpatterns,
    *platforms.urlpatterns,
    *money.urlpatterns,
    *tracks.urlpatterns,
    *corpora.urlpatterns,
    *forms.urlpatterns,
    *annotation_files.urlpatterns,
    *judgments.urlpatterns,
    *define.urlpatterns,
    *describe.urlpatterns,
    *reading.urlpatterns,
    *scores.urlpatterns,
    *documents.urlpatterns,
    *diagnostics.urlpatterns,
    *pooling.urlpatterns,
    *checks.urlpatterns,
    *compare.urlpatterns,
    *corpus.urlpatterns,
    *metrics.urlpatterns,
    *prmse.urlpatterns,
    *gallery.urlpatterns,
]
