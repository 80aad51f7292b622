"""A container that does not answer three times in a row ends, and one that answers does not."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

from kbpo import alive

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(alive, "FAILURES", tmp_path / "failures")
    monkeypatch.setenv("KBPO_VAR", str(tmp_path))
    return tmp_path


@pytest.fixture(params=[200, 503])
def site(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(request.param if self.path == "/healthz" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(alive, "SITE", f"http://127.0.0.1:{server.server_port}")
    yield request.param
    server.shutdown()


def test_a_site_that_answers_is_left_running(site: int) -> None:
    ended: list[int] = []
    for _ in range(5):
        assert alive.judge(alive.web(), lambda: ended.append(1)) == (site != 200)
    assert not ended


def test_a_site_that_does_not_answer_ends_at_the_third_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(alive, "SITE", "http://127.0.0.1:1")
    ended: list[int] = []
    for number in range(1, 7):
        assert alive.judge(alive.web(), lambda: ended.append(1)) == 1
        assert len(ended) == number // 3


def test_a_worker_that_answers_nothing_ends_and_one_that_cannot_be_asked_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    silent = socket.create_server(("127.0.0.1", 0))  # a broker that takes connections and hangs
    hung = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
    for broker, expected in {
        "redis://127.0.0.1:1/0": alive.ILL,
        hung: alive.ILL,
        "memory://": alive.DEAD,
    }.items():
        monkeypatch.setattr("kbpo.settings.CELERY_BROKER_URL", broker)
        assert alive.worker() == expected, broker
    silent.close()


def test_one_answer_begins_the_count_anew() -> None:
    ended: list[int] = []
    for state in (alive.DEAD, alive.DEAD, alive.HEALTHY, alive.DEAD, alive.DEAD):
        alive.judge(state, lambda: ended.append(1))
    assert not ended


def test_a_clock_that_stands_still_is_noticed(place: Path) -> None:
    assert alive.beat() == alive.DEAD
    schedule = place / "beat-schedule"
    schedule.write_text("")
    assert alive.beat() == alive.HEALTHY
    os.utime(schedule, (time.time() - 2 * alive.BEAT_WRITES,) * 2)
    assert alive.beat() == alive.DEAD


@pytest.mark.parametrize("name", alive.CHECKS)
def test_every_container_of_ours_is_checked_so(name: str) -> None:
    service = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"][name]
    assert service["healthcheck"]["test"] == ["CMD", "python", "-m", "kbpo.alive", name]
    assert service["restart"] == "unless-stopped"
