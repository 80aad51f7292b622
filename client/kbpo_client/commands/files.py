"""Commands of files: what systems are run on, and runs that are read and uploaded."""

from __future__ import annotations

import json as json_module
import sys
from dataclasses import asdict
from operator import attrgetter
from pathlib import Path
from typing import Any

import click

from formats.messages import FormatError
from kbpo_client.client import Refused, Unreachable
from kbpo_client.commands.printing import (
    progress,
    show_json,
    show_messages,
    show_rows,
    status_changes,
)
from kbpo_client.commands.service import ERRORS_IN_FILE, Service, fail, json_option, service_of
from kbpo_client.reading import DOCUMENTS, INPUTS, MENTIONS, SCHEMA, Reading, read_run
from kbpo_client.summary import UNDER_WAY, share_in_percent, summary_lines


@click.command()
@json_option
@service_of
def tracks(service: Service, as_json: bool) -> None:
    """List the tracks there are."""
    with service.client() as client:
        listed = client.tracks()
    show_rows(
        listed,
        as_json,
        ["track", "name", "status", "target"],
        lambda track: [
            track["slug"],
            track["name"],
            track["status"],
            f"±{share_in_percent(track['target_half_width'])} %",
        ],
    )


@click.command()
@click.argument("track")
@click.option("--to", type=click.Path(path_type=Path, file_okay=False), help="Else ./TRACK/")
@json_option
@service_of
def download(service: Service, track: str, to: Path | None, as_json: bool) -> None:
    """Download what systems are run on: the documents of TRACK and their schema, or its inputs."""
    folder = to or Path(track)
    with service.client() as client:
        schema = client.schema(track)
        folder.mkdir(parents=True, exist_ok=True)
        files = {"documents": DOCUMENTS if schema.get("predicates") else INPUTS}
        if "mention_types" in client.track(track)["corpus"]["links"]:
            files["mentions"] = MENTIONS
        for kind, name in files.items():
            with progress(name) as tell:
                client.download(track, folder / name, what=kind, tell=tell)
    if schema.get("predicates"):
        text = json_module.dumps(schema, indent=1, ensure_ascii=False)
        (folder / SCHEMA).write_text(text, encoding="utf-8")
        files["schema"] = SCHEMA
    if as_json:
        show_json({kind: folder / name for kind, name in files.items()})
    elif "schema" in files:
        click.echo(f"The documents and the schema are in {folder}/.")
    else:
        click.echo(f"The inputs are in {folder}/.")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--track", help="A track that was downloaded into ./TRACK/")
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Where it lies")
@json_option
def validate(file: Path, track: str | None, data: Path | None, as_json: bool) -> None:
    """Read FILE as the service would, without a connection."""
    folder = data or (Path(track) if track else None)
    if folder is None:
        raise click.UsageError("Say --track, or --data with what `kbpo download` wrote.")
    try:
        reading = read_run(file, folder)
    except FileNotFoundError as missing:
        fail(f"There is no {missing}. `kbpo download {track or 'TRACK'}` fetches it.", 2)
    except (OSError, FormatError, ValueError) as error:
        fail(str(error), ERRORS_IN_FILE)
    show_reading(reading, as_json)
    sys.exit(0 if reading.usable else ERRORS_IN_FILE)


def show_reading(reading: Reading, as_json: bool) -> None:
    """Prints the messages of a reader in the order of the lines, and what the file comes to."""
    messages = [
        {name: getattr(message, name) for name in ("code", "severity", "line", "text")}
        for message in sorted(reading.messages, key=attrgetter("line"))
    ]
    if as_json:
        summary = asdict(reading) | {"usable": reading.usable, "messages": messages}
        summary[summary.pop("items")] = summary.pop("usable_items")
        show_json(summary)
        return
    show_messages(messages)
    counts = (
        (reading.usable_items, reading.items.removesuffix("s")),
        (reading.errors, "error"),
        (reading.warnings, "warning"),
    )
    words = (f"{n:,} {noun}{'' if n == 1 else 's'}" for n, noun in counts)
    verdict = "The service would take it as it is." if reading.usable else "It needs mending first."
    click.echo(f"{', '.join(words)}. {verdict}")


@click.command()
@click.argument("track")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--name", required=True, help="What the run is called on the board.")
@click.option("--description", default="", help="A sentence on how the system works.")
@click.option("--team", default="", help="Which of your teams, by its slug; else the first.")
@click.option("--paper", default="", help="Address of the paper.")
@click.option("--code", default="", help="Address of the code.")
@click.option(
    "--private",
    is_flag=True,
    help="Neither it nor its scores are shown to others until `kbpo publish`; a data release of the"
    " closed track contains it without its name.",
)
@click.option("--anonymous", is_flag=True, help="Others see a number in place of names.")
@click.option("--again", is_flag=True, help="Yes, although the same file is there already.")
@click.option(
    "--wait/--no-wait",
    default=None,
    help="Wait until the file is read and planned; in a terminal that is the default.",
)
@json_option
@service_of
def submit(
    service: Service,
    /,
    track: str,
    file: Path,
    name: str,
    wait: bool | None,
    as_json: bool,
    **said: Any,
) -> None:
    """Upload FILE to TRACK. Nothing is spent before `kbpo confirm`.

    It ends with 0 once the file is stored, whatever is found in it.
    """
    waits = sys.stdout.isatty() and not as_json if wait is None else wait
    with service.client() as client:
        with progress(file.name, file.stat().st_size) as tell:
            submission = client.submit(track, file, name, tell=tell, **said)
        number = submission["id"]
        click.echo(f"Submission {number} is stored.", err=True)
        if waits:
            try:
                submission = client.wait(number, seconds=1.0, tell=status_changes())
            except (KeyboardInterrupt, Refused, Unreachable) as trouble:
                click.echo(f"{trouble or 'Stopped watching.'} The service goes on.", err=True)
    if as_json:
        show_json(submission)
        return
    if reason := submission.get("reason"):
        click.echo(reason)
    if submission["status"] in UNDER_WAY:
        click.echo(f"`kbpo status {number} --watch` shows its price once it is planned.")
    else:
        click.echo("\n".join(summary_lines(submission | {"reason": ""}, {})))


COMMANDS = (tracks, download, validate, submit)
