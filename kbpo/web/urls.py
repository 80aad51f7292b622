"""Addresses of the pages: every page family lists its own."""

from __future__ import annotations

from kbpo.web.desk import (
    annotations as annotation_files,
)
from kbpo.web.desk import (
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
    slices,
    tracks,
)
from kbpo.web.desk.people import accounts, platforms, requests, workers
from kbpo.web.desk.quality import (
    experts,
    measures,
    pilots,
)
from kbpo.web.public import (
    ask,
    board,
    client,
    compare,
    guidelines,
    health,
    metrics,
    notices,
    people,
    prose,
    search,
    track,
    whole,
)
from kbpo.web.public import (
    documents as corpus,
)
from kbpo.web.research import (
    explore,
    ledger,
    missed_page,
    runs,
    submissions,
    upload,
)

urlpatterns = [
    *health.urlpatterns,
    *board.urlpatterns,
    *track.urlpatterns,
    *guidelines.urlpatterns,
    *whole.urlpatterns,
    *client.urlpatterns,
    *runs.urlpatterns,
    *ledger.urlpatterns,
    *submissions.urlpatterns,
    *explore.urlpatterns,
    *missed_page.urlpatterns,
    *upload.urlpatterns,
    *prose.urlpatterns,
    *search.urlpatterns,
    *people.urlpatterns,
    *notices.urlpatterns,
    *ask.urlpatterns,
    *home.urlpatterns,
    *batches.urlpatterns,
    *workers.urlpatterns,
    *accounts.urlpatterns,
    *requests.urlpatterns,
    *experts.urlpatterns,
    *measures.urlpatterns,
    *pilots.urlpatterns,
    *log.urlpatterns,
    *platforms.urlpatterns,
    *money.urlpatterns,
    *tracks.urlpatterns,
    *corpora.urlpatterns,
    *forms.urlpatterns,
    *annotation_files.urlpatterns,
    *judgments.urlpatterns,
    *slices.urlpatterns,
    *describe.urlpatterns,
    *reading.urlpatterns,
    *scores.urlpatterns,
    *compare.urlpatterns,
    *corpus.urlpatterns,
    *metrics.urlpatterns,
]
