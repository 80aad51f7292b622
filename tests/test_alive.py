"""A container that does not answer three times in a row ends, and one that answers does not."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
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
    ended: list[bool] = []
    for _ in range(5):
        assert alive.judge(alive.web, ended.append) == (site != 200)
    assert not ended


def test_a_site_that_does_not_answer_ends_at_the_third_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(alive, "SITE", "http://127.0.0.1:1")
    ended: list[bool] = []
    for number in range(1, 10):
        assert alive.judge(alive.web, ended.append) == 1
        assert ended == [False, True, True][: number // 3], "asked first, then killed"


@pytest.mark.soak
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
    ended: list[bool] = []
    for state in (alive.DEAD, alive.DEAD, alive.HEALTHY, alive.DEAD, alive.DEAD):
        alive.judge(lambda state=state: state, ended.append)
    assert not ended


def test_what_was_started_anew_is_asked_before_it_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[bool] = []
    for began in ("100", "200"):
        monkeypatch.setattr(alive, "_began", lambda process, began=began: began)
        for _ in range(4):
            alive.judge(lambda: alive.DEAD, ended.append)
    assert ended == [False, False]


def test_what_does_not_end_when_it_is_asked_is_killed(tmp_path: Path) -> None:
    """As in a container: a first process that hands signals on and ends with the one it started,
    which waits for ever for what it has in hand.
    """
    hangs = (
        "import pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: pathlib.Path(sys.argv[1]).write_text('asked'))\n"
        "pathlib.Path(sys.argv[1]).write_text('up')\n"
        "while True: time.sleep(1)\n"
    )
    init = (
        "import signal, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', sys.argv[1], sys.argv[2]])\n"
        "signal.signal(signal.SIGTERM, lambda *_: child.send_signal(signal.SIGTERM))\n"
        "sys.exit(child.wait() != -9)\n"
    )
    said = tmp_path / "said"
    first = subprocess.Popen([sys.executable, "-c", init, hangs, str(said)])
    try:
        wait_until(lambda: said.exists() and said.read_text() == "up")
        alive.end(False, first.pid)
        wait_until(lambda: said.read_text() == "asked")
        assert first.poll() is None, "it waits for what it has in hand"
        alive.end(True, first.pid)
        assert first.wait(60) == 0
    finally:
        for child in alive._started_by(first.pid):
            os.kill(child, signal.SIGKILL)
        first.kill()


def wait_until(is_so: Callable[[], bool]) -> None:
    """Nothing, as soon as it is so."""
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_clock_that_stands_still_is_noticed(place: Path) -> None:
    assert alive.beat() == alive.DEAD
    schedule = place / "beat-schedule"
    schedule.write_text("")
    assert alive.beat() == alive.HEALTHY
    os.utime(schedule, (time.time() - 2 * alive.BEAT_WRITES,) * 2)
    assert alive.beat() == alive.DEAD


@pytest.mark.parametrize("name", alive.CHECKS)
def test_every_container_of_ours_is_checked_so(name: str) -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    service = services["people" if name == "worker" else name]
    assert service["healthcheck"]["test"] == ["CMD", "python", "-m", "kbpo.alive", name]
    assert service["restart"] == "unless-stopped"
    assert service["init"] is True, "else the first process is ours, and nobody inside can kill it"


def test_a_check_that_is_ended_for_its_length_is_a_failure() -> None:
    def hangs() -> int:
        raise KeyboardInterrupt  # as Docker ends it, but here the test goes on

    ended: list[bool] = []
    for number in range(1, 8):
        with pytest.raises(KeyboardInterrupt):
            alive.judge(hangs, ended.append)
        assert ended == [False, True][: (number - 1) // 3], "noted before it asked"
    assert alive.judge(lambda: alive.HEALTHY, ended.append) == 0
    assert not alive.FAILURES.exists()
