"""Commands about runs: status, problems, confirmation, orders, changes, withdrawal."""

from __future__ import annotations

import sys
from decimal import Decimal
from functools import partial
from typing import Any, cast

import click

from kbpo_client.client import Client, Refused, Unreachable
from kbpo_client.commands.printing import (
    print_json,
    print_messages,
    print_rows,
    print_table,
    status_printer,
)
from kbpo_client.commands.service import (
    REFUSED,
    RUN,
    STOPPED,
    Service,
    end_with_error,
    fetch_own_run,
    json_option,
    service_of,
)
from kbpo_client.summary import (
    full_report_lines,
    percent_with_interval,
    progress_text,
    summary_lines,
)

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
    """List the runs of your teams, the latest first, each with its number and main score; then the
    uploads that were not accepted.
    """
    chosen = {name: value for name, value in switches.items() if value}
    with service.client() as client:
        listed = cast(list[dict[str, Any]], client.submissions(**chosen))
    if as_json or not listed:
        nothing = f"Your teams have no {'such run' if chosen else 'run yet'}."
        print_rows(listed, as_json, [], list, nothing=nothing)
        return
    uploads = [row for row in listed if row["status"] in DISCARDED]
    if found := [row for row in listed if row["status"] not in DISCARDED]:
        print_table(
            [*OF_RUN, "score, 80 %"], [[*_run_columns(row), _main_score(row)] for row in found]
        )
    if uploads:
        click.echo(f"{'' if not found else chr(10)}No runs, but files that were not taken:")
        print_table([*OF_RUN], [_run_columns(row) for row in uploads])


def _run_columns(row: dict[str, Any]) -> list[str]:
    return [row["name"], row["track"], row["team"], str(row["id"]), row["status_text"]]


def _main_score(row: dict[str, Any]) -> str:
    """Return the main score of a run, as “F1 41.2 (38.9–43.6)”, and whether more is
    being judged.
    """
    score = row.get("score")
    still = ", provisional" if row["status"] != "scored" else ""
    return f"{score['label']} {percent_with_interval(score)}{still}" if score else "–"


@click.command()
@click.argument("number", type=RUN)
@click.option("--watch", is_flag=True, help="Wait until it waits for you, or ends.")
@click.option("--long", "in_long", is_flag=True, help="With every figure that it has.")
@json_option
@service_of
def status(service: Service, number: int, watch: bool, in_long: bool, as_json: bool) -> None:
    """Show the status of submission NUMBER, its scores and rank, and the next step.

    With --watch it ends with 0 if the submission waits for you or is scored, and with 1 if it was
    refused, expired, failed or was withdrawn.
    """
    tell = status_printer()

    def wait_for_submission(client: Client) -> dict[str, Any]:
        try:
            return client.wait(number, tell=tell, tell_trouble=partial(click.echo, err=True))
        except KeyboardInterrupt:
            again = f"`kbpo status {number} --watch` watches again."
            end_with_error(f"Stopped watching; the service goes on. {again}", STOPPED)

    with service.client() as client:
        submission = wait_for_submission(client) if watch else client.submission(number)
        board: dict[str, Any] | None = {}
        if submission["scores"] and not as_json:
            try:
                board = client.board(submission["track"])
            except (Refused, Unreachable) as trouble:  # all but the rank is known by now
                click.echo(f"{trouble} The rank is left out.", err=True)
                board = None
    if as_json:
        print_json(submission)
    else:
        click.echo("\n".join(summary_lines(submission, board)))
    if in_long and not as_json:
        click.echo("\n".join(full_report_lines(submission)))
    if watch and submission["status"] in ENDED:
        sys.exit(REFUSED)


@click.command()
@click.argument("number", type=RUN)
@json_option
@service_of
def problems(service: Service, number: int, as_json: bool) -> None:
    """List the problems in the file of submission NUMBER, each once, with its first line."""
    with service.client() as client:
        noticed = cast(list[dict[str, Any]], client.problems(number))
    if as_json:
        print_json(noticed)
        return
    print_messages(noticed)
    if not noticed:
        click.echo("No problems.")


NOTHING_MORE = "No offer: it is closed or cannot be narrowed, or prices are being computed."
CANNOT_WITHDRAW = {"refused", "expired", "withdrawn"}
"""Statuses in which a submission cannot be withdrawn"""
at_most_option = click.option(
    "--at-most", type=str, help="Dollars; where it costs more by now, nothing is done."
)


@click.command()
@click.argument("number", type=RUN)
@click.option("--half-width", type=str, help="One of the plan's widths, as 0.03")
@click.option("--development", type=int, help="Predictions of the development part to judge.")
@click.option("--good-lines-only", is_flag=True, help="Evaluate a file with errors without them.")
@at_most_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@service_of
def confirm(
    service: Service,
    number: int,
    half_width: str | None,
    development: int | None,
    good_lines_only: bool,
    at_most: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Confirm the plan of submission NUMBER, which reserves its price."""
    choices: dict[str, Any] = {"good_lines_only": good_lines_only}
    if development is not None:
        choices["development"] = development
    if half_width is not None:
        choices["half_width"] = half_width
    if at_most is not None:
        choices["at_most"] = at_most
    with service.client() as client:
        if not yes:
            submission = fetch_own_run(client, number)
            if submission["status"] != "planned":
                state = f"{submission['name']} ({progress_text(submission)})"
                sentence = f"{state} cannot be confirmed: only a run that waits for you can be."
                end_with_error(f"{sentence} {submission['reason']}".rstrip(), REFUSED)
            click.echo("\n".join(summary_lines(submission, {}, with_next=False)))
            if (why_not := submission.get("why_not")) and half_width is None:
                end_with_error(why_not, REFUSED)
            plan = submission["plan"]
            option = _find_option(plan, half_width or plan["chosen"])
            if submission["counts"].get("errors") and not good_lines_only:
                end_with_error(
                    "Its file has errors: correct it, or say --good-lines-only.", REFUSED
                )
            offered = plan.get("development", {"n": 0, "each": "0"})
            n = offered["n"] if development is None else development
            price = Decimal(option["at_most"]) + n * Decimal(offered["each"])
            click.confirm(f"Begin the judging, at most ${price}?", abort=True, err=True)
            choices.setdefault("at_most", str(price))
        submission = client.confirm(number, **choices)
    if as_json:
        print_json(submission)
    else:
        click.echo(f"{submission['status_text']}; ${submission['money']['reserved']} reserved.")


def _find_option(offer: dict[str, Any], half_width: str) -> dict[str, Any]:
    """Return the option with this half-width of the interval. If there is none, end the command
    with the list of options.
    """
    options: list[tuple[str, dict[str, Any]]] = sorted(offer["options"].items(), reverse=True)
    try:
        fitting = [option for width, option in options if float(width) == float(half_width)]
    except ValueError:
        fitting = []
    if not fitting:
        offered = ", ".join(f"{width} (at most ${option['at_most']})" for width, option in options)
        end_with_error(f"No half-width {half_width} is offered; choose one of {offered}.", REFUSED)
    return fitting[0]


@click.command()
@click.argument("number", type=RUN)
@click.option("--half-width", required=True, help="The width that you want, as 0.02")
@at_most_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@service_of
def order(
    service: Service,
    number: int,
    half_width: str,
    at_most: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Order more judgments of scored submission NUMBER, for a narrower interval."""
    with service.client() as client:
        submission = fetch_own_run(client, number)
        further, name = submission["further"], submission["name"]
        seen: dict[str, Any] = {"at_most": at_most}
        if not yes:
            if further is None:
                state = submission["status_text"].lower()
                why_not = f"It is {state}: more can be ordered once it is scored."
                end_with_error(
                    NOTHING_MORE if submission["status"] == "scored" else why_not, REFUSED
                )
            price = _find_option(further, half_width)["at_most"]
            asked = f"Order more judgments of {name}, up to ±{half_width}, at most ${price}?"
            click.confirm(asked, abort=True, err=True)
            seen |= {"made_at": further["made_at"], "at_most": at_most or price}
        ordered = client.order(number, half_width, (further or {}).get("order"), **seen)
    if as_json:
        print_json(ordered)
    else:
        click.echo(f"{ordered['status_text']}; ${ordered['money']['reserved']} reserved.")


@click.command()
@click.argument("number", type=RUN)
@click.option("--name", help="What the run is called on the board.")
@click.option("--description", help="A sentence on how the system works.")
@click.option("--paper", help="Address of the paper.")
@click.option("--code", help="Address of the code.")
@click.option("--anonymous/--named", default=None, help="Others see a number, or the names.")
@json_option
@service_of
def edit(service: Service, /, number: int, as_json: bool, **said: Any) -> None:
    """Change the details of submission NUMBER; options that are not given stay unchanged."""
    changes = {name: value for name, value in said.items() if value is not None}
    if not changes:
        options = ", ".join(f"--{name}" for name in said)
        raise click.UsageError(f"What is to change? Give one of {options}.")
    with service.client() as client:
        submission = client.edit(number, **changes)
    if as_json:
        print_json(submission)
    else:
        click.echo(f"{submission['name']}: changed.")


@click.command()
@click.argument("number", type=RUN)
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@service_of
def publish(service: Service, number: int, yes: bool, as_json: bool) -> None:
    """Make private submission NUMBER public. This cannot be undone."""
    with service.client() as client:
        submission = fetch_own_run(client, number)
        was_private = submission["private"]
        if was_private:
            if not yes:
                name = submission["name"]
                click.confirm(f"Show {name} to everybody, for good?", abort=True, err=True)
            submission = client.publish(number)
    if as_json:
        print_json(submission)
    else:
        names = ", without your names" if submission["anonymous"] else ""
        already = "" if was_private else " already"
        click.echo(f"{submission['name']} is public{already}{names}.")


@click.command()
@click.argument("number", type=RUN)
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@service_of
def withdraw(service: Service, number: int, yes: bool, as_json: bool) -> None:
    """Withdraw submission NUMBER. Existing judgments are kept and paid."""
    with service.client() as client:
        if not yes:
            submission = fetch_own_run(client, number)
            if submission["status"] in CANNOT_WITHDRAW:
                state = submission["status_text"]
                end_with_error(
                    f"{submission['name']} ({state}): there is nothing to withdraw.", REFUSED
                )
            click.confirm(f"Withdraw {submission['name']}, for good?", abort=True, err=True)
        submission = client.withdraw(number)
    print_status(submission, as_json)


@click.command()
@click.argument("number", type=RUN)
@json_option
@service_of
def retry(service: Service, number: int, as_json: bool) -> None:
    """Retry submission NUMBER, which failed."""
    with service.client() as client:
        submission = client.retry(number)
    print_status(submission, as_json)


def print_status(submission: dict[str, Any], as_json: bool) -> None:
    """Print the status of a submission in a line."""
    if as_json:
        print_json(submission)
    else:
        click.echo(f"{submission['name']}: {submission['status_text']}.")


COMMANDS = (runs, status, problems, confirm, order, edit, publish, withdraw, retry)
