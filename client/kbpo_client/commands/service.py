"""The service that a command uses, and how commands end with an error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NoReturn

import click

from kbpo_client import settings
from kbpo_client.client import Client, Refused, Unreachable

ACCOUNT_PAGE = "your account page"
"""As the service's sentences call it"""
REFUSED, ERRORS_IN_FILE, UNREACHABLE, STOPPED = 1, 3, 4, 130
"""Exit codes besides 0 and click's own 2 for a command that was not understood"""

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print what the service said, as JSON."
)


class _Number(click.IntRange):
    """A run's number, from 1."""

    name = "number"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Return the number. Ends the command, with a sentence, for one that no run has."""
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
        self.then = "Then say it with --token or KBPO_TOKEN." if token else "`kbpo login` keeps it."

    @contextmanager
    def client(self) -> Iterator[Client]:
        """Return a connection; what goes wrong ends the command with a sentence and a code of its
        own.
        """
        if not self.url:
            raise click.UsageError("Which service? Say --url, or set KBPO_URL.")
        token = self.token or settings.tokens().get(self.url, "")
        tell = partial(click.echo, err=True)

        try:
            with Client(self.url, token, frames=False, tell_wait=tell) as client:
                yield client
        except Refused as refusal:
            fail(self.in_words(refusal), REFUSED)
        except Unreachable as error:
            fail(str(error), UNREACHABLE)

    def in_words(self, refusal: Refused) -> str:
        """Return a refusal, with the address of the page that it speaks of, and what to do with the
        token that is made there.
        """
        sentence = str(refusal).replace(ACCOUNT_PAGE, f"{ACCOUNT_PAGE}, {self.url}/account/")
        if refusal.code == "same_file":
            sentence = sentence.replace("Say so", "Say --again")
        return f"{sentence} {self.then}" if refusal.status == 401 else sentence


def own_run(client: Client, number: int) -> dict[str, Any]:
    """Return the submission of that number; ends the command if it is a public one of others."""
    submission = client.submission(number)
    if not submission.get("own", True):
        fail(f"{submission['team']} {submission['name']} is not a run of your teams.", REFUSED)
    return submission


service_of = click.make_pass_decorator(Service)


def fail(sentence: str, code: int) -> NoReturn:
    """End the command with a sentence on the error stream and an exit code; with `--json` also as
    `error` on the output.
    """
    click.echo(sentence, err=True)
    context = click.get_current_context(silent=True)
    if context is not None and context.params.get("as_json"):
        click.echo(json.dumps({"error": sentence}, ensure_ascii=False))
    sys.exit(code)
