"""Commands of what systems are run on: tracks, their documents or inputs."""

from __future__ import annotations

import json as json_module
from pathlib import Path

import click

from kbpo_client.commands.printing import progress, show_json, show_rows
from kbpo_client.commands.service import Service, json_option, service_of
from kbpo_client.reading import DOCUMENTS, INPUTS, MENTIONS, SCHEMA
from kbpo_client.telling import in_percent


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
            f"±{in_percent(track['target_half_width'])} %",
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


COMMANDS = (tracks, download)
