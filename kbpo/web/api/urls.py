"""URL patterns of the API."""

from __future__ import annotations

from django.urls import path
from drf_spectacular.views import SpectacularAPIView

from kbpo.web.api import board, judges, judgments, submissions, tracks

urlpatterns = [
    path("schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("tracks/", tracks.TrackList.as_view(), name="api-tracks"),
    path("tracks/<slug:slug>/", tracks.TrackDetail.as_view(), name="api-track"),
    path(
        "tracks/<slug:slug>/schema/",
        tracks.SchemaDetail.as_view(),
        name="api-schema-of-track",
    ),
    path("tracks/<slug:slug>/releases/", tracks.Releases.as_view(), name="api-releases"),
    path("tracks/<slug:slug>/documents/", tracks.Documents.as_view(), name="api-documents"),
    path(
        "tracks/<slug:slug>/mentions/",
        tracks.MentionTypes.as_view(),
        name="api-mention-types",
    ),
    path("tracks/<slug:slug>/compare/", board.Comparison.as_view(), name="api-compare"),
    path(
        "tracks/<slug:slug>/judgments/",
        tracks.TrackJudgments.as_view(),
        name="api-track-judgments",
    ),
    path("tracks/<slug:slug>/board/", board.BoardDetail.as_view(), name="api-board"),
    path("tracks/<slug:slug>/metrics/", board.Metrics.as_view(), name="api-metrics"),
    path("tracks/<slug:slug>/judges/", judges.Judges.as_view(), name="api-judges"),
    path("tracks/<slug:slug>/unscored/", judges.Unscored.as_view(), name="api-unscored"),
    path("tracks/<slug:slug>/scores/", judges.Scores.as_view(), name="api-scores"),
    path("submissions/", submissions.SubmissionList.as_view(), name="api-submissions"),
    path("submissions/<int:pk>/", submissions.SubmissionDetail.as_view(), name="api-submission"),
    path("submissions/<int:pk>/confirm/", submissions.Confirm.as_view(), name="api-confirm"),
    path("submissions/<int:pk>/order/", submissions.Order.as_view(), name="api-order"),
    path("submissions/<int:pk>/withdraw/", submissions.Withdraw.as_view(), name="api-withdraw"),
    path("submissions/<int:pk>/retry/", submissions.Retry.as_view(), name="api-retry"),
    path("submissions/<int:pk>/slices/", submissions.Slices.as_view(), name="api-slices"),
    path(
        "submissions/<int:pk>/predictions/",
        judgments.Predictions.as_view(),
        name="api-predictions",
    ),
    path(
        "submissions/<int:pk>/predictions/<int:prediction>/dispute/",
        judgments.Dispute.as_view(),
        name="api-dispute",
    ),
    path("submissions/<int:pk>/missed/", judgments.Missed.as_view(), name="api-missed"),
    path("submissions/<int:pk>/problems/", submissions.Problems.as_view(), name="api-problems"),
]
