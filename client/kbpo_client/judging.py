"""Lets any program judge: a line of JSON in, a line of JSON out.

The program stays alive from line to line, so that a model is loaded once. It may answer in another
order than it was asked in; it must flush its output.
"""

from __future__ import annotations

import json
import queue
import shlex
import subprocess
import threading
from collections.abc import Callable
from typing import Any, Self

from formats.scores import LARGEST, OUTSIDE
from kbpo_client.client import Client, Json

END = None
SHOWN = 80
"""Characters of what a judge wrote, in a sentence"""


class JudgeFailed(Exception):
    """The program ended, was silent or said what is no score; the text is a sentence."""


class Judge:
    """A program that runs and judges."""

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
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(END)

    def _write(self, asked: list[Json]) -> None:
        assert self._process.stdin is not None
        try:
            for question in asked:
                self._process.stdin.write(json.dumps(question, ensure_ascii=False) + "\n")
            self._process.stdin.flush()
        except OSError:  # it ended: the reader tells
            pass

    def ask(self, asked: list[Json], tell: Callable[[Json], None]) -> None:
        """Asks about some things, and tells each score as soon as it is there. Raises
        JudgeFailed.
        """
        threading.Thread(target=self._write, args=[asked], daemon=True).start()
        waiting = {question["id"] for question in asked}
        while waiting:
            score = self._next(waiting)
            waiting.discard(score["id"])
            tell(score)

    def _next(self, waiting: set[int]) -> Json:
        try:
            line = self._lines.get(timeout=self.seconds)
        except queue.Empty:
            raise JudgeFailed(
                f"`{self.command}` said nothing for {self.seconds:.0f} seconds. Does it flush its"
                " output after each line?"
            ) from None
        if line is END:
            code = self._process.wait()
            raise JudgeFailed(
                f"`{self.command}` ended (code {code}) while {len(waiting)} answers were missing."
            )
        return score_of(str(line), waiting)


def score_of(line: str, waiting: set[int]) -> Json:
    """Return what a line of a judge says. Raises JudgeFailed."""
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
    named: Json,
    program: Judge,
    *,
    batch: int,
    tell: Callable[[int, Json], None],
    not_tuned: bool = False,
) -> int:
    """Return how many things a program judged until nothing of a track was left; `tell` hears how
    many are done, and what the service answered. `not_tuned` states that no judgment of the track
    tuned it. What a program said before it failed is brought, so that nobody pays twice.
    """
    done = 0
    while True:
        page = client.unscored(track, named, limit=batch)
        if not page["results"]:
            return done
        scores: list[Json] = []
        try:
            program.ask(page["results"], scores.append)
        finally:
            if scores:
                brought = client.bring_scores(track, named, scores, not_tuned=not_tuned)
                done += len(scores)
                tell(done, brought)
