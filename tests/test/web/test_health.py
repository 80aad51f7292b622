"""Machines ask how the service is; pages load nothing from elsewhere;
a server is told what is unsafe.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client

from kbpo.clock import served
from kbpo.web.apps import check_server
from kbpo.web.errors import OneLine
from kbpo.web.http import OURS, UNFRAMED

As = Callable[[str], Client]
POLICY = "Content-Security-Policy"


@pytest.mark.django_db
def test_a_site_that_works_says_so(client: Client) -> None:
    answer = client.get("/healthz")
    assert answer.status_code == 200 and answer.json() == {"database": True, "redis": True}
    assert "no-store" in answer["Cache-Control"]


@pytest.mark.django_db
def test_a_site_without_its_database_says_so(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_away(*_: Any, **__: Any) -> Any:
        raise OperationalError("connection refused")

    monkeypatch.setattr(connection, "cursor", is_away)
    assert client.get("/healthz").status_code == 503


@pytest.mark.django_db
def test_figures_are_for_who_has_the_token(client: Client, settings: Any) -> None:
    assert client.get("/metrics").status_code == 404
    assert client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 404
    settings.METRICS_TOKEN = "a long token"
    assert client.get("/metrics", headers={"Authorization": "Bearer other"}).status_code == 404
    served.record_beat()
    told = client.get("/metrics", headers={"Authorization": "Bearer a long token"})
    assert told.status_code == 200
    figures = dict(line.rsplit(" ", 1) for line in told.content.decode().splitlines())
    assert 0 <= float(figures["kbpo_clock_seconds"]) < 60
    assert figures["kbpo_redis"] == "1" and float(figures["kbpo_disk_free_bytes"]) > 0
    assert "kbpo_workers" in figures
    assert any(name.startswith('kbpo_waiting{stage="ingest"') for name in figures)


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/", "/login/", "/no/such/page/", "/api/tracks/", "/annotate/"])
def test_every_page_says_what_it_may_load(path: str, client: Client) -> None:
    assert client.get(path)[POLICY] == f"{OURS}; {UNFRAMED}"


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("ALLOWED_HOSTS", ["*"], "kbpo.W001"),
        ("ALLOWED_HOSTS", [".example.org"], "kbpo.W001"),
        ("SITE_URL", "http://kbp.example.org", "kbpo.W002"),
        ("PROXIES", 0, "kbpo.W003"),
    ],
)
def test_what_is_unsafe_on_a_server_is_named(
    name: str, value: Any, told: str, settings: Any
) -> None:
    settings.ALLOWED_HOSTS = ["kbp.example.org"]
    settings.SITE_URL, settings.PROXIES = "https://kbp.example.org", 1
    assert check_server(None) == []
    setattr(settings, name, value)
    assert [warning.id for warning in check_server(None)] == [told]


def test_a_refused_request_is_one_line_in_the_log_and_a_bug_keeps_its_traceback() -> None:
    def left(name: str, status: int | None) -> bool:
        record = logging.LogRecord(name, logging.WARNING, "", 0, "", (), sys.exc_info())
        if status is not None:
            record.status_code = status
        assert OneLine().filter(record)
        return record.exc_info is not None

    try:
        raise ValueError
    except ValueError:
        assert not left("django.request", 404) and not left("django.request", 400)
        assert not left("django.security.DisallowedHost", None)
        assert left("django.request", 500) and left("kbpo.queue", None)
