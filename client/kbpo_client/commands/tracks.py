"""Commands of what systems are run on: tracks, their documents or inputs."""

from __future__ import annotations

import json as json_module
import shutil
import zipfile
from pathlib import Path
from typing import Any, cast

import click

from kbpo_client.commands.printing import SHOWN_CHARACTERS, progress, show_json, show_rows
from kbpo_client.commands.service import REFUSED, Service, end, json_option, service_of
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
@click.option("--all", "everything", is_flag=True, help="Guidelines, baseline and licence as well.")
@json_option
@service_of
def download(
    service: Service, track: str, to: Path | None, everything: bool, as_json: bool
) -> None:
    """Download what systems are run on: the documents of TRACK and their schema, or its inputs."""
    folder = to or Path(track)
    if everything:
        download_all(service, track, folder, as_json)
        return
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


def download_all(service: Service, track: str, folder: Path, as_json: bool) -> None:
    """Downloads all that one needs to take part in a track, in one file, and unpacks it."""
    folder.mkdir(parents=True, exist_ok=True)
    packed = folder / "all.zip"
    with service.client() as client, progress(packed.name) as tell:
        client.download(track, packed, what="all", tell=tell)
    names = []
    try:
        with zipfile.ZipFile(packed) as archive:
            for name in archive.namelist():
                target = folder / Path(name).name  # whatever folder it names
                with archive.open(name) as source, target.open("wb") as file:
                    shutil.copyfileobj(source, file)
                names.append(target.name)
    except zipfile.BadZipFile as bad:
        end(f"What arrived is no whole zip file: {bad}", REFUSED)
    finally:
        packed.unlink(missing_ok=True)
    if as_json:
        show_json({"folder": folder, "files": names})
    else:
        click.echo(f"{', '.join(names)} are in {folder}/: README.md says what they are.")


@click.command()
@click.argument("track")
@click.option("--q", default="", help='Words of the text; "in quotes" as they stand, -without.')
@json_option
@service_of
def documents(service: Service, track: str, q: str, as_json: bool) -> None:
    """List the documents of TRACK, or those that have some words."""
    with service.client() as client:
        listed = cast(list[dict[str, Any]], client.documents(track, q))
    if as_json:
        show_json(listed)
        return
    for row in listed:
        begins = " ".join((row["title"] or row["begins"]).split())
        click.echo(f"{row['id']}  {begins[:SHOWN_CHARACTERS]}")
    click.echo(f"{len(listed):,} documents.")


COMMANDS = (tracks, download, documents)
