"""The service that a command uses, the stored tokens, and how commands end with an error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click

from kbpo_client.client import Client, Refused, Unreachable

ACCOUNT_PAGE = "your account page"
"""The account page as the service's sentences name it"""
REFUSED, ERRORS_IN_FILE, UNREACHABLE, STOPPED = 1, 3, 4, 130
"""Exit codes besides 0 and click's own 2 for wrong usage"""

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print what the service said, as JSON."
)


class _Number(click.IntRange):
    """Type of the command-line argument for a run's number, which is at least 1."""

    name = "number"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Return the number. Ends the command with a sentence if no run can have it."""
        number = click.INT.convert(value, param, ctx)
        if number < 1:
            self.fail(f"There is no run {number}: they are numbered from 1.", param, ctx)
        return int(number)


RUN = _Number(min=1)


class Service:
    """The service that a command uses: its address, and its errors in words."""

    def __init__(self, url: str | None, token: str | None) -> None:
        self.url = (url or "").rstrip("/")
        self.token = token
        self.token_advice = (
            "Then say it with --token or KBPO_TOKEN." if token else "`kbpo login` keeps it."
        )

    @contextmanager
    def client(self) -> Iterator[Client]:
        """Yield a connection. Errors end the command with a sentence and an exit code."""
        if not self.url:
            raise click.UsageError("Which service? Say --url, or set KBPO_URL.")
        token = self.token or stored_tokens().get(self.url, "")
        tell = partial(click.echo, err=True)

        try:
            with Client(self.url, token, frames=False, tell_wait=tell) as client:
                yield client
        except Refused as refusal:
            end_with_error(self.refusal_text(refusal), REFUSED)
        except Unreachable as error:
            end_with_error(str(error), UNREACHABLE)

    def refusal_text(self, refusal: Refused) -> str:
        """Return a refusal as a sentence, with the address of the account page and what to do with
        a new token.
        """
        sentence = str(refusal).replace(ACCOUNT_PAGE, f"{ACCOUNT_PAGE}, {self.url}/account/")
        if refusal.code == "same_file":
            sentence = sentence.replace("Say so", "Say --again")
        return f"{sentence} {self.token_advice}" if refusal.status == 401 else sentence


def fetch_own_run(client: Client, number: int) -> dict[str, Any]:
    """Return the submission of that number; end the command if it is another team's public run."""
    submission = client.submission(number)
    if not submission.get("own", True):
        end_with_error(
            f"{submission['team']} {submission['name']} is not a run of your teams.", REFUSED
        )
    return submission


service_of = click.make_pass_decorator(Service)


def end_with_error(sentence: str, code: int) -> NoReturn:
    """End the command with a sentence on the error stream and an exit code; with `--json` also as
    `error` on the output.
    """
    click.echo(sentence, err=True)
    context = click.get_current_context(silent=True)
    if context is not None and context.params.get("as_json"):
        click.echo(json.dumps({"error": sentence}, ensure_ascii=False))
    sys.exit(code)


def settings_directory() -> Path:
    """Return the directory of the client's settings, which may not exist yet."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "kbpo"


def stored_tokens() -> dict[str, str]:
    """Return the token of each service by address; empty before the first log-in."""
    try:
        kept = json.loads((settings_directory() / "tokens.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(url): str(token) for url, token in kept.items()} if isinstance(kept, dict) else {}


def save_token(url: str, token: str) -> Path:
    """Store a token in a file that only its owner can read, and return the path."""
    folder = settings_directory()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / "tokens.json"
    part = path.with_suffix(".part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(stored_tokens() | {url: token}, file)
    part.replace(path)
    return path
