"""Typed readers of environment variables.

Each reader returns a value of one type and registers the setting (name, kind, default, help), so
that a test can compare `.env.example` with what the code reads. A wrong value stops the service at
start with one sentence that names the variable, the value and the expected form. An empty value
counts as unset, as `NAME=` in an env file.
"""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from django.core.exceptions import ImproperlyConfigured

T = TypeVar("T")


@dataclass(frozen=True)
class Setting:
    """One environment variable that the service reads."""

    name: str
    kind: str
    default: str
    help: str


REGISTRY: dict[str, Setting] = {}


def read_text(name: str, default: str, help: str) -> str:
    """Return the value without surrounding blanks."""
    return _read_variable(name, "text", default, help, str)


def read_flag(name: str, default: bool, help: str) -> bool:
    """Return True for 1, true, yes, on; False for 0, false, no, off."""
    return _read_variable(name, "flag", default, help, _parse_flag)


def read_integer(
    name: str, default: int, help: str, *, minimum: int | None = None, maximum: int | None = None
) -> int:
    """Return a whole number within the bounds."""
    return _read_variable(
        name,
        "integer",
        default,
        help,
        lambda raw: _check_bounds(_parse_integer(raw), minimum, maximum),
    )


def read_decimal(
    name: str,
    default: Decimal | str,
    help: str,
    *,
    minimum: Decimal | str | None = None,
    maximum: Decimal | str | None = None,
) -> Decimal:
    """Return an exact decimal number within the bounds, since money and probabilities are never
    floats here.
    """
    low = None if minimum is None else Decimal(minimum)
    high = None if maximum is None else Decimal(maximum)
    return _read_variable(
        name,
        "decimal",
        Decimal(default),
        help,
        lambda raw: _check_bounds(_parse_finite_decimal(raw), low, high),
    )


def read_choice(name: str, default: str, help: str, options: Iterable[str]) -> str:
    """Return one of the options."""
    allowed = tuple(options)

    def convert(raw: str) -> str:
        if raw not in allowed:
            raise ValueError(f"one of {', '.join(allowed)}")
        return raw

    return _read_variable(name, "choice", default, help, convert)


def read_list(name: str, default: Iterable[str], help: str) -> list[str]:
    """Return the comma-separated values, without blanks and empty values."""
    return _read_variable(
        name,
        "list",
        list(default),
        help,
        lambda raw: [part.strip() for part in raw.split(",") if part.strip()],
    )


def read_path(name: str, default: Path | str, help: str) -> Path:
    """Return an absolute path; `~` is the home directory."""
    return _read_variable(
        name, "path", Path(default), help, lambda raw: Path(raw).expanduser().absolute()
    )


def read_url(name: str, default: str, help: str, schemes: Iterable[str]) -> str:
    """Return a URL with one of the schemes, or the default."""
    allowed = tuple(schemes)

    def convert(raw: str) -> str:
        if urlsplit(raw).scheme not in allowed:
            raise ValueError(
                f"a URL that starts with {' or '.join(scheme + '://' for scheme in allowed)}"
            )
        return raw

    return _read_variable(name, "url", default, help, convert)


def database_settings(url: str, *, name: str = "DATABASE_URL") -> dict[str, Any]:
    """Return the Django settings of the PostgreSQL database at `url`.

    `postgres://user:password@host:port/database?option=value`; every part may be percent-encoded.
    `?host=/directory` means the Unix socket in that directory; the other options are passed to
    libpq unchanged (`sslmode`, `connect_timeout`).
    """
    expected = (
        "postgres://user:password@host:port/database, or"
        " postgres://user:password@/database?host=/directory"
    )
    parts = urlsplit(url)
    try:
        port = parts.port
        options = dict(
            parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        )
    except ValueError as error:
        raise _setting_error(name, url, expected) from error
    dbname = unquote(parts.path.removeprefix("/"))
    if (
        parts.scheme not in ("postgres", "postgresql")
        or not dbname
        or "/" in parts.path[1:]
        or parts.fragment
    ):
        raise _setting_error(name, url, expected)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": dbname,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", None) or unquote(_host_of(parts.netloc)),
        "PORT": options.pop("port", None) or str(port or ""),
        "OPTIONS": options,
    }


def libpq_timeouts(
    *, lock: Decimal, statement: Decimal, idle: Decimal, options: dict[str, str]
) -> dict[str, str]:
    """Return libpq's options with limits to every wait, in seconds; 0 is no limit.

    `lock` and `statement` limit a statement, `idle` limits a transaction whose process sends
    nothing. A lost host is detected within a minute. Values in `options` are kept, and its
    `options=-c …` come last, so that they take precedence.
    """
    limits = {
        "lock_timeout": lock,
        "statement_timeout": statement,
        "idle_in_transaction_session_timeout": idle,
    }
    commands = [f"-c {name}={int(seconds * 1000)}ms" for name, seconds in limits.items()]
    noticed = {
        "connect_timeout": "10",
        "keepalives_idle": "30",
        "keepalives_interval": "10",
        "keepalives_count": "3",
        "tcp_user_timeout": "60000",
    }
    asked = options.get("options", "")
    return noticed | options | {"options": " ".join([*commands, asked]).strip()}


def mail_settings(url: str, *, name: str = "MAIL_URL") -> dict[str, Any]:
    """Return the Django settings of the mail server at `url`; mails go to the log without one.

    Raises ValueError for a URL that is not smtp://user:password@host:port or smtps://….
    """
    if not url:
        return {"EMAIL_BACKEND": "django.core.mail.backends.console.EmailBackend"}
    parts = urlsplit(url)
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname:
        raise ValueError(f"{name} must read smtp://user:password@host:587 or smtps://…:465.")
    encrypted = parts.scheme == "smtps"
    return {
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": parts.port or (465 if encrypted else 587),
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_SSL": encrypted,
        "EMAIL_USE_TLS": not encrypted and bool(parts.username),
        "EMAIL_TIMEOUT": 20,
    }


def broker_url(redis_url: str, *, name: str = "REDIS_URL") -> str:
    """Return the Celery broker URL for the Redis at `redis_url`; Celery has its own syntax for Unix
    sockets.
    """
    parts = urlsplit(redis_url)
    if parts.scheme in ("redis", "rediss") and parts.hostname:
        return redis_url
    if parts.scheme != "unix" or not parts.path.startswith("/"):
        raise _setting_error(
            name,
            redis_url,
            "redis://host:port/number, rediss://… or unix:///path/to/socket?db=number",
        )
    options = dict(parse_qsl(parts.query))
    options["virtual_host"] = options.pop("db", "0")
    # kombu splits at the at sign before it decodes, so credentials keep their place and the path
    # its encoding.
    credentials = parts.netloc.rpartition("@")[0]
    place = f"{credentials + '@' if credentials else ''}{quote(unquote(parts.path))}"
    return f"redis+socket://{place}?{urlencode(options)}"


def _read_variable(name: str, kind: str, default: T, help: str, convert: Callable[[str], T]) -> T:
    """Return the converted value of the variable; the default if it is unset or empty."""
    shown = ",".join(default) if isinstance(default, list) else str(default)
    if isinstance(default, bool):
        shown = "true" if default else "false"
    _register(Setting(name, kind, shown, help))
    raw = os.environ.get(name, "").strip()
    if not raw:
        return default
    try:
        return convert(raw)
    except ValueError as error:
        raise _setting_error(name, raw, str(error)) from error


def _register(setting: Setting) -> None:
    """Store the setting. Raises ValueError if it was read before with another kind."""
    if not re.fullmatch(r"[A-Z][A-Z0-9_]*", setting.name):
        raise ValueError(f"{setting.name!r} is not a name for an environment variable")
    known = REGISTRY.setdefault(setting.name, setting)
    if known.kind != setting.kind:
        raise ValueError(
            f"{setting.name} is read as {known.kind} in one place and as {setting.kind} in another"
        )


def _parse_flag(raw: str) -> bool:
    """Return the boolean value of a flag."""
    answers = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(
        ("0", "false", "no", "off"), False
    )
    if raw.lower() not in answers:
        raise ValueError("true or false (1, yes, on; 0, no, off)")
    return answers[raw.lower()]


def _parse_integer(raw: str) -> int:
    """Parse a whole number."""
    if not re.fullmatch(r"[+-]?[0-9]+", raw):
        raise ValueError("a whole number")
    return int(raw)


def _parse_finite_decimal(raw: str) -> Decimal:
    """Convert a text to a finite decimal number. Raises ValueError, also for NaN and Infinity."""
    try:
        number = Decimal(raw)
    except InvalidOperation as error:
        raise ValueError("a decimal number") from error
    if not number.is_finite():
        raise ValueError("a decimal number")
    return number


def _check_bounds(number: Any, minimum: Any, maximum: Any) -> Any:
    """Return the number unchanged. Raises ValueError if it lies outside the bounds."""
    if (minimum is not None and number < minimum) or (maximum is not None and number > maximum):
        low = "any number" if minimum is None else minimum
        high = "any number" if maximum is None else maximum
        raise ValueError(f"a number between {low} and {high}")
    return number


def _host_of(netloc: str) -> str:
    """Return the host of a network location in its original case, since it may be a socket
    directory.
    """
    host = netloc.rpartition("@")[2]
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def _setting_error(name: str, value: str, expected: str) -> ImproperlyConfigured:
    """Return an error that names the variable, its value (without a password) and the expected
    form.
    """
    shown = re.sub(r"(://[^:/@]*):.*@", r"\1:…@", value)
    return ImproperlyConfigured(f"{name}={shown!r} cannot be used: expected {expected}.")
