"""What a server does over Redis: Celery's queue, pages that are kept, nudges."""

from __future__ import annotations

import os
import subprocess
import sys

from django.conf import settings
from kombu import Connection
from redis_server import Redis

from kbpo import environment
from kbpo.web.kept import ForgivingCache


def test_celery_reaches_redis_at_the_broker_url(redis_server: Redis) -> None:
    with Connection(environment.broker_url(redis_server.url())) as connection:
        connection.ensure_connection(max_retries=1, timeout=60)
        queue = connection.SimpleQueue("test-redis")
        queue.put({"sent": True})
        assert queue.get(timeout=60).payload == {"sent": True}
        queue.close()


def test_what_is_kept_is_kept(redis_server: Redis) -> None:
    cache = ForgivingCache(redis_server.url(), {})
    cache.set("a", {"b": 1}, 60)
    assert cache.get("a") == {"b": 1} and cache.get_many(["a", "c"]) == {"a": {"b": 1}}
    assert cache.add("d", 1, 60) and not cache.add("d", 1, 60)
    assert cache.delete("a") and not cache.has_key("a")


def test_a_server_with_redis_nudges_and_one_without_does_not_start(redis_server: Redis) -> None:
    def told(**environment: str) -> subprocess.CompletedProcess[str]:
        asked = "from kbpo import settings as s; print(s.NUDGES, s.CACHES['default']['BACKEND'])"
        return subprocess.run(
            [sys.executable, "-c", asked],
            env=os.environ | environment,
            cwd=settings.BASE_DIR,
            capture_output=True,
            text=True,
        )

    assert told(REDIS_URL=redis_server.url()).stdout == "True kbpo.web.kept.ForgivingCache\n"
    refused = told(REDIS_URL="", KBPO_LOCAL="false")
    assert refused.returncode and "REDIS_URL must be set on a server" in refused.stderr
