"""Commands of judges: their scores are uploaded, or computed by a program.

A program reads a line of JSON for each item and writes one. It keeps running, so that a model is
loaded once. It may answer in another order; it must flush its output.
"""

from __future__ import annotations

import json
import queue
import shlex
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import click

from formats.scores import LARGEST, OUTSIDE
from kbpo_client.client import Client, Json
from kbpo_client.commands.printing import print_json
from kbpo_client.commands.service import REFUSED, Service, end_with_error, json_option, service_of

END = None
SHOWN = 80
"""Greatest number of characters of a judge's output in a sentence"""


class JudgeFailed(Exception):
    """Raised if the program ended, timed out or wrote no valid score; the text is a sentence."""


class Judge:
    """A running program that judges."""

    def __init__(self, command: str, seconds: float) -> None:
        self.command, self.seconds = command, seconds
        try:
            self._process = subprocess.Popen(
                shlex.split(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
            )
        except (OSError, ValueError, IndexError) as error:
            raise JudgeFailed(f"`{command}` cannot be run: {error}.") from error
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read_lines, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def _read_lines(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(END)

    def _write_items(self, items: list[Json]) -> None:
        assert self._process.stdin is not None
        try:
            for question in items:
                self._process.stdin.write(json.dumps(question, ensure_ascii=False) + "\n")
            self._process.stdin.flush()
        except OSError:  # it ended: the reader tells
            pass

    def ask(self, items: list[Json], tell: Callable[[Json], None]) -> None:
        """Ask for scores of some items, and call `tell` with each as it arrives. Raises
        JudgeFailed.
        """
        threading.Thread(target=self._write_items, args=[items], daemon=True).start()
        waiting = {question["id"] for question in items}
        while waiting:
            score = self._next_score(waiting)
            waiting.discard(score["id"])
            tell(score)

    def _next_score(self, waiting: set[int]) -> Json:
        try:
            line = self._lines.get(timeout=self.seconds)
        except queue.Empty:
            why = f"`{self.command}` is silent. Flush its output after each line."
            raise JudgeFailed(why) from None
        if line is END:
            code = self._process.wait()
            raise JudgeFailed(
                f"`{self.command}` ended (code {code}) while {len(waiting)} answers were missing."
            )
        return parse_score_line(str(line), waiting)


def parse_score_line(line: str, waiting: set[int]) -> Json:
    """Return the score in a line of a judge. Raises JudgeFailed."""
    try:
        answer: Any = json.loads(line)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise JudgeFailed(
            f"The judge wrote a line that is no JSON object: {line.strip()[:SHOWN]!r}."
        )
    number, value = answer.get("id"), answer.get("score", answer.get("value"))
    if type(number) is not int or number not in waiting:
        shown = f"{number!r}"[:SHOWN]
        raise JudgeFailed(f"The judge answered about {shown}, which it was not asked about.")
    shown = f"{value!r}"[:SHOWN]
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise JudgeFailed(f"The judge’s score of {number} is no finite number: {shown}.")
    if abs(value) > LARGEST:
        raise JudgeFailed(f"{OUTSIDE}, the judge’s of {number} does not: {shown}.")
    return {"id": number, "value": float(value)}


def judge_all(
    client: Client,
    track: str,
    judge_name: Json,
    program: Judge,
    *,
    batch: int,
    tell: Callable[[int, Json], None],
    not_tuned: bool = False,
) -> int:
    """Let a program score all items of a track, and return their number. `tell` is called with the
    number so far and the answer of the service. `not_tuned` states that the judge was not tuned on
    judgments of the track. Scores before a failure are stored, so that they need not be computed
    twice.
    """
    done = 0
    while True:
        page = client.unscored(track, judge_name, limit=batch)
        if not page["results"]:
            return done
        scores: list[Json] = []
        try:
            program.ask(page["results"], scores.append)
        finally:
            if scores:
                brought = client.bring_scores(track, judge_name, scores, not_tuned=not_tuned)
                done += len(scores)
                tell(done, brought)


CAME_LATE = "The judge is new: state with --not-tuned that it was not tuned on these judgments."


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
    """Upload FILE with scores of a metric or a judge to TRACK: all of them or none."""
    judge = {"name": name, "version": judge_version, "prompt": prompt}
    with service.client() as client:
        imported = client.import_scores(track, file, judge, not_tuned=not_tuned)
    if as_json:
        print_json(imported)
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
    """Let a program score the items of TRACK that it has not scored yet.

    It reads a line of JSON for each item (`id`, and the text) and writes one with `id` and
    `score`. After a stop it continues where it was.
    """
    named = {"name": name, "version": judge_version, "prompt": prompt}
    is_warned = False

    def print_progress(n_done: int, brought: Json) -> None:
        nonlocal is_warned
        click.echo(f"{n_done:,} judged, {brought['left']:,} left", err=True)
        if brought["needs_statement"] and not is_warned:
            is_warned = True
            click.echo(CAME_LATE, err=True)

    how: Any = {"batch": batch, "tell": print_progress, "not_tuned": not_tuned}
    try:
        with service.client() as client, Judge(program, timeout) as running:
            done = judge_all(client, track, named, running, **how)
            while watch is not None:
                time.sleep(watch)
                done += judge_all(client, track, named, running, **how)
    except JudgeFailed as failure:
        end_with_error(f"{failure} What it said before is kept.", REFUSED)
    if as_json:
        print_json({"judged": done, "left": 0})
    else:
        click.echo(f"{done:,} judged; nothing is left.")


COMMANDS = (import_scores, judge)
