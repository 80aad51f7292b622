"""No upload, no scoring and no slow webhook keeps people waiting: steps run in four queues."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from queue import Empty, Queue
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


def test_a_tick_asks_all_queues_to_look_where_something_may_be_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    due = iter([False, True])
    monkeypatch.setattr(celery, "import_string", lambda path: lambda: next(due))
    with celery.app.connection_for_read() as connection:
        queues = {name: connection.SimpleQueue(name) for name in celery.QUEUES}
        for queue in queues.values():
            queue.clear()
        celery.tick()
        for queue in queues.values():
            with pytest.raises(Empty):
                queue.get_nowait()
        celery.tick()
        for name, queue in queues.items():
            message = queue.get_nowait()
            message.ack()
            assert message.payload[0] == [name]
            queue.close()


def test_a_file_that_is_being_read_delays_no_other_queue_in_one_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A second file waits for the first one: it takes no thread from other queues."""
    is_read, ran = Event(), Queue[str]()

    def look(queue: str) -> int:
        ran.put(queue)
        assert queue != "files" or is_read.wait(30)
        return 0

    monkeypatch.setattr(single_worker, "look", look)
    looks: dict[str, Future[int]] = {}
    with ThreadPoolExecutor(len(celery.QUEUES)) as threads:
        for expected in (set(celery.QUEUES), {"people", "scores", "notices"}):
            single_worker.look_at_all(threads, looks)
            assert {ran.get(timeout=30) for _ in expected} == expected
            wait([one for queue, one in looks.items() if queue != "files"], timeout=30)
        is_read.set()
        wait(looks.values(), timeout=30)
        single_worker.look_at_all(threads, looks)
        assert {ran.get(timeout=30) for _ in celery.QUEUES} == set(celery.QUEUES)


def test_what_people_do_is_looked_at_each_second_until_the_next_tick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    answers = {"people": [2, 1, 0, 5], "scores": [1, 1]}
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    def look(names: tuple[str, ...]) -> int:
        looks.append(now)
        return answers[celery.QUEUE_OF[names[0]]].pop(0)

    monkeypatch.setattr(celery.time, "monotonic", lambda: now)
    monkeypatch.setattr(celery.time, "sleep", sleep)
    monkeypatch.setattr(celery, "_look", look)
    assert celery.look("people") == 3 and looks == [0, 1, 2]
    assert celery.look("scores") == 1
    answers["people"] = [1] * 10
    looks.clear()
    celery.look("people")
    assert looks == [2, 3, 4, 5, 6], "the next tick comes after five seconds"
