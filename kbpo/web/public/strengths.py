"""Strengths of systems that are compared two by two, for the board and for the API."""

from __future__ import annotations

from typing import Any

from kbpo.evaluation.leaderboard import Board


def strengths_of(shown: Board) -> dict[str, Any]:
    """What a board's evaluation tells of strengths under its criterion, with the systems that stand
    on it; empty where systems are judged one by one.
    """
    settings = shown.evaluation.settings if shown.evaluation is not None else {}
    stored: dict[str, Any] = settings.get("strengths", {}).get(shown.criterion, {})
    if not stored:
        return {}
    standing = {row.submission.pk: row.submission for row in shown.rows}
    rows = [
        strength | {"submission": standing[strength["system"]]}
        for strength in stored["rows"]
        if strength["system"] in standing
    ]
    return stored | {"rows": rows}
