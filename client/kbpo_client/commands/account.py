"""The command that stores a token."""

from __future__ import annotations

import sys

import click

from kbpo_client import settings
from kbpo_client.commands.printing import show_json
from kbpo_client.commands.service import Service, json_option, service_of


@click.command()
@click.option("--token", help="Else it is asked for, or read from what is piped in.")
@json_option
@service_of
def login(service: Service, token: str | None, as_json: bool) -> None:
    """Keep a token for this service, once it has been tried."""
    token = token or _ask_for_token()
    service.token, service.then = token.strip(), "Then run `kbpo login` again with it."
    with service.client() as client:
        client.submissions()
    kept_in = settings.save_token(service.url, token.strip())
    if as_json:
        show_json({"url": service.url, "kept_in": kept_in})
    else:
        click.echo(f"Kept in {kept_in}.")


def _ask_for_token() -> str:
    """Return the token that a person types unseen, or the first line of what is piped in."""
    if sys.stdin.isatty():
        return str(click.prompt("Token (from your account page)", hide_input=True))
    token = sys.stdin.readline().strip()
    if not token:
        raise click.UsageError("Which token? Say --token, or pipe it in.")
    return token


COMMANDS = (login,)
