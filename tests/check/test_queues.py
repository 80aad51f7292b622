"""No upload, no scoring and no slow webhook keeps people waiting: steps run in four queues."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from queue import Queue
from threading import Event

import pytest
import yaml
from django.conf import settings

from kbpo import celery, single_worker


def queue_of(task: str, *args: str) -> str:
    return str(celery.app.amqp.router.route({}, task, args=args)["queue"].name)


@pytest.mark.parametrize(
    ("queue", "steps"),
    [
        ("people", {"ask", "publish", "collect", "settle", "pay_out", "reap"}),
        ("files", {"load", "annotate", "ingest", "measure", "plan", "release"}),
        ("scores", {"draw", "estimate"}),
        ("notices", {"mail", "call"}),
    ],
)
def test_a_step_is_asked_for_in_its_queue(queue: str, steps: set[str]) -> None:
    assert {queue_of("kbpo.step", name) for name in steps} == {queue}
    assert queue_of("kbpo.look", queue) == queue


def test_every_step_is_in_one_queue() -> None:
    assert sorted(celery.QUEUE_OF) == sorted(celery.PIPELINE)
    assert sum(map(len, celery.QUEUES.values())) == len(celery.PIPELINE)


def test_every_queue_has_a_worker_of_its_own_in_compose() -> None:
    services = yaml.safe_load((settings.BASE_DIR / "docker-compose.yml").read_text())["services"]
    taken = {
        name: word.removeprefix("--queues=")
        for name, service in services.items()
        for word in str(service.get("command")).split()
        if word.startswith("--queues=")
    }
    assert taken == {name: name for name in celery.QUEUES}


def test_a_file_that_is_being_read_delays_no_other_queue_in_one_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A second file waits for the first one: it takes no thread from other queues."""
    is_read, ran = Event(), Queue[str]()

    def look(queue: str) -> int:
        ran.put(queue)
        assert queue != "files" or is_read.wait(30)
        return 0

    monkeypatch.setattr(single_worker, "run_queue_round", look)
    looks: dict[str, Future[int]] = {}
    with ThreadPoolExecutor(len(celery.QUEUES)) as threads:
        for expected in (set(celery.QUEUES), {"people", "scores", "notices"}):
            single_worker.start_idle_queues(threads, looks)
            assert {ran.get(timeout=30) for _ in expected} == expected
            wait([one for queue, one in looks.items() if queue != "files"], timeout=30)
        is_read.set()
        wait(looks.values(), timeout=30)
        single_worker.start_idle_queues(threads, looks)
        assert {ran.get(timeout=30) for _ in celery.QUEUES} == set(celery.QUEUES)
