"""Commands of judges: their scores are brought, or asked of a program."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from kbpo_client.client import Json
from kbpo_client.commands.printing import show_json
from kbpo_client.commands.service import REFUSED, Service, end, json_option, service_of
from kbpo_client.judging import Judge, JudgeFailed, judge_all

CAME_LATE = (
    "The judge came after the first judgments: it narrows no score until an admin states, with"
    " --not-tuned or on the page of scores, that it was not tuned on these judgments."
)


@click.command("import-scores")
@click.argument("track")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--name", default="", help="Of the judge, if the file has no column `metric`.")
@click.option("--judge-version", default="", help="Which version of it.")
@click.option("--prompt", default="", help="Which prompt it was given.")
@click.option("--not-tuned", is_flag=True, help="State that no judgment of TRACK tuned it.")
@json_option
@service_of
def import_scores(
    service: Service,
    track: str,
    file: Path,
    name: str,
    judge_version: str,
    prompt: str,
    not_tuned: bool,
    as_json: bool,
) -> None:
    """Bring FILE with scores of a metric or a judge to TRACK: whole, or not at all."""
    judge = {"name": name, "version": judge_version, "prompt": prompt}
    with service.client() as client:
        imported = client.import_scores(track, file, judge, not_tuned=not_tuned)
    if as_json:
        show_json(imported)
        return
    for scorer, taken in imported.items():
        click.echo(f"{scorer}: {taken['sentence']}")


@click.command()
@click.argument("track")
@click.option("--name", required=True, help="What the judge is called.")
@click.option("--judge-version", default="", help="Which version of it: another one is another.")
@click.option("--prompt", default="", help="Which prompt it is given: another one is another.")
@click.option("--not-tuned", is_flag=True, help="State that no judgment of TRACK tuned it.")
@click.option("--command", "program", required=True, help="The program: JSON Lines in and out.")
@click.option("--batch", type=click.IntRange(1, 1000), default=100, help="Things asked at once.")
@click.option("--timeout", type=float, default=300.0, help="Seconds without an answer.")
@click.option("--watch", type=float, help="Look for more every so many seconds, for ever.")
@json_option
@service_of
def judge(
    service: Service,
    track: str,
    name: str,
    judge_version: str,
    prompt: str,
    not_tuned: bool,
    program: str,
    batch: int,
    timeout: float,
    watch: float | None,
    as_json: bool,
) -> None:
    """Let a program judge what it has not scored yet on TRACK.

    It reads a line of JSON for each thing (`id`, and the text) and writes one with `id` and
    `score`. Stopped, it goes on where it was.
    """
    named = {"name": name, "version": judge_version, "prompt": prompt}
    is_warned = False

    def tell(done: int, brought: Json) -> None:
        nonlocal is_warned
        click.echo(f"{done:,} judged, {brought['left']:,} left", err=True)
        if brought["needs_statement"] and not is_warned:
            is_warned = True
            click.echo(CAME_LATE, err=True)

    how: Any = {"batch": batch, "tell": tell, "not_tuned": not_tuned}
    try:
        with service.client() as client, Judge(program, timeout) as running:
            done = judge_all(client, track, named, running, **how)
            while watch is not None:
                time.sleep(watch)
                done += judge_all(client, track, named, running, **how)
    except JudgeFailed as failure:
        end(f"{failure} What it said before is kept.", REFUSED)
    if as_json:
        show_json({"judged": done, "left": 0})
    else:
        click.echo(f"{done:,} judged; nothing is left.")


COMMANDS = (import_scores, judge)
