"""Commands that report the state of runs and the problems of their files."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, cast

import click

from kbpo_client.client import Client, Refused, Unreachable
from kbpo_client.commands.printing import (
    changes,
    show_json,
    show_messages,
    show_rows,
    table,
)
from kbpo_client.commands.service import (
    REFUSED,
    RUN,
    STOPPED,
    Service,
    end,
    json_option,
    service_of,
)
from kbpo_client.telling import in_full, on_one_screen, percent

ENDED = {"refused", "failed", "expired", "withdrawn"}
"""Statuses in which a submission has ended without a score"""
DISCARDED = ("refused", "expired")
"""Statuses of uploads that never became runs"""
OF_RUN = ("run", "track", "team", "number", "state")
STATUSES = (
    "received",
    "read",
    "planned",
    "confirmed",
    "judging",
    "scored",
    *DISCARDED,
    "withdrawn",
    "failed",
)


@click.command()
@click.option("--track", default="", help="Those of one track.")
@click.option("--status", type=click.Choice(STATUSES), help="Those in one state.")
@json_option
@service_of
def runs(service: Service, /, as_json: bool, **switches: str | None) -> None:
    """List the runs of your teams, the latest first, with their numbers and what each is ranked by;
    after them the uploads that never became one.
    """
    chosen = {name: value for name, value in switches.items() if value}
    with service.client() as client:
        listed = cast(list[dict[str, Any]], client.submissions(**chosen))
    if as_json or not listed:
        nothing = f"Your teams have no {'such run' if chosen else 'run yet'}."
        show_rows(listed, as_json, [], list, nothing=nothing)
        return
    uploads = [row for row in listed if row["status"] in DISCARDED]
    if found := [row for row in listed if row["status"] not in DISCARDED]:
        table([*OF_RUN, "score, 80 %"], [[*_of_run(row), _score(row)] for row in found])
    if uploads:
        click.echo(f"{'' if not found else chr(10)}No runs, but files that were not taken:")
        table([*OF_RUN], [_of_run(row) for row in uploads])


def _of_run(row: dict[str, Any]) -> list[str]:
    return [row["name"], row["track"], row["team"], str(row["id"]), row["status_text"]]


def _score(row: dict[str, Any]) -> str:
    """Return what a run is ranked by, as “F1 41.2 (38.9–43.6)”, and whether more is being
    judged.
    """
    score = row.get("score")
    still = ", provisional" if row["status"] != "scored" else ""
    return f"{score['label']} {percent(score)}{still}" if score else "–"


@click.command()
@click.argument("number", type=RUN)
@click.option("--watch", is_flag=True, help="Wait until it waits for you, or ends.")
@click.option("--long", "in_long", is_flag=True, help="With every figure that it has.")
@json_option
@service_of
def status(service: Service, number: int, watch: bool, in_long: bool, as_json: bool) -> None:
    """Tell where submission NUMBER is: its state, its scores and rank, what to do next.

    With --watch it ends with 0 where the submission waits for you or is scored, and with 1 where it
    was refused, expired or was given up or withdrawn.
    """
    tell = changes()

    def waited(client: Client) -> dict[str, Any]:
        try:
            return client.wait(number, tell=tell, tell_trouble=partial(click.echo, err=True))
        except KeyboardInterrupt:
            again = f"`kbpo status {number} --watch` watches again."
            end(f"Stopped watching; the service goes on. {again}", STOPPED)

    with service.client() as client:
        submission = waited(client) if watch else client.submission(number)
        board: dict[str, Any] | None = {}
        if submission["scores"] and not as_json:
            try:
                board = client.board(submission["track"])
            except (Refused, Unreachable) as trouble:  # all but the rank is known by now
                click.echo(f"{trouble} The rank is left out.", err=True)
                board = None
    if as_json:
        show_json(submission)
    else:
        click.echo("\n".join(on_one_screen(submission, board)))
    if in_long and not as_json:
        click.echo("\n".join(in_full(submission)))
    if watch and submission["status"] in ENDED:
        sys.exit(REFUSED)


@click.command()
@click.argument("number", type=RUN)
@json_option
@service_of
def problems(service: Service, number: int, as_json: bool) -> None:
    """List what the reader noticed in the file of submission NUMBER: each thing once, with the
    first line that has it.
    """
    with service.client() as client:
        noticed = cast(list[dict[str, Any]], client.problems(number))
    if as_json:
        show_json(noticed)
        return
    show_messages(noticed)
    if not noticed:
        click.echo("Nothing was noticed.")


COMMANDS = (runs, status, problems)
