"""Commands of a release: it is downloaded, and its board is computed anew."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import click

from kbpo_client.commands.printing import progress, show_json
from kbpo_client.commands.service import (
    ERRORS_IN_FILE,
    REFUSED,
    Service,
    fail,
    json_option,
    service_of,
)
from scoring import rescore as rescoring
from scoring.release import BadRelease, Release


@click.command()
@click.argument("track")
@click.option("--number", type=int, help="Which one; else the latest.")
@click.option("--to", type=click.Path(path_type=Path), help="Another folder than this one.")
@json_option
@service_of
def release(
    service: Service, track: str, number: int | None, to: Path | None, as_json: bool
) -> None:
    """Download a release of TRACK: all that its board rests on, for `kbpo rescore`."""
    with service.client() as client:
        released = client.releases(track)
        by_number = {kept["number"]: kept for kept in released}
        if not released or number not in (None, *by_number):
            numbers = ", ".join(map(str, by_number)) or "none yet"
            fail(f"There is no such release of {track}; there are: {numbers}.", REFUSED)
        wanted = released[0] if number is None else by_number[number]
        folder = to or Path()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / wanted["file"]
        with progress(path.name, wanted["size"]) as tell:
            client.download_release(wanted, path, tell=tell)
    if as_json:
        show_json(wanted | {"path": path})
    else:
        click.echo(f"{path}: `kbpo rescore {path}` computes its board.")


@click.command()
@click.argument("release", type=click.Path(path_type=Path, exists=True))
@json_option
def rescore(release: Path, as_json: bool) -> None:
    """Compute the board of RELEASE (a directory or its zip file) anew, offline, and compare.

    Ends with 0 if every number agrees to 10 significant digits, with 3 if something differs: it is
    named.
    """
    try:
        rescored = rescoring.rescore(Release(release))
    except BadRelease as bad:
        fail(str(bad), ERRORS_IN_FILE)
    if as_json:
        show_json(asdict(rescored) | {"agrees": rescored.agrees})
    else:
        _tell_rescored(rescored)
    if not rescored.agrees:
        sys.exit(ERRORS_IN_FILE)


def _tell_rescored(rescored: rescoring.Rescored) -> None:
    for sentence in rescored.altered:
        click.echo(sentence)
    for difference in rescored.differences:
        click.echo(str(difference))
    for method, n_numbers in rescored.left_out.items():
        click.echo(f"Not recomputed: {n_numbers:,} {method}.")
    agree = rescored.numbers - len(rescored.differences)
    click.echo(
        f"{rescored.track}: {agree:,} of {rescored.numbers:,} recomputed numbers agree to"
        f" {rescoring.DIGITS} significant digits."
    )


COMMANDS = (release, rescore)
