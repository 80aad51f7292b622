"""Formats a run for one screen: its status, scores, rank, and the next step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

FEW = 50
"""Number of judgments below which a figure has no decimals, as on the pages"""
UNDER_WAY = {"received", "read", "confirmed", "judging"}
"""Statuses in which a submission waits for the service, or for annotators"""


def percent_with_interval(figure: Json | None) -> str:
    """Return a figure with its 80 % interval, as “41.2 (38.9–43.6)”, in whole per cents if it rests
    on few judgments; “41.2 (all judged)” if everything is judged, a dash without a figure.
    """
    if figure is None or figure.get("value") is None:
        return "–"
    low, high = figure.get("low80"), figure.get("high80")
    decimals = 0 if figure.get("n_labels", FEW) < FEW else 1
    value = share_in_percent(figure["value"], decimals)
    if figure.get("low95") is not None and figure["low95"] == figure.get("high95"):
        return f"{value} (all judged)"
    if low is None or high is None:
        return value
    return f"{value} ({share_in_percent(low, decimals)}–{share_in_percent(high, decimals)})"


def share_in_percent(share: float | str, decimals: int | None = None) -> str:
    """Return a share in per cent, rounded to `decimals` as on the pages (halves up); without
    `decimals` unrounded, as “4.5”.
    """
    if decimals is None:
        return f"{100 * float(share):.6g}"
    return f"{100 * float(share) + 1e-7:.{decimals}f}"


def progress_text(submission: Json) -> str:
    """Return the status of a submission, as “Being judged, 131 of 160”."""
    status, judging = str(submission["status_text"]), submission["judging"]
    reason = submission.get("reason", "")
    if submission["status"] == "received" and reason:
        return f"{status}: {reason}"
    if submission["status"] == "received":
        return f"{status}, {share_in_percent(submission['progress'], 0)} % read"
    if submission["status"] == "judging":
        return f"{status}, {judging['judged']:,} of {judging['sample']:,}"
    return status


def rank_text(system: Json) -> str:
    """Return a system's rank on a board, as “2–3”; empty without a rank."""
    best, worst = system["rank"] or ("", "")
    return f"{best}" if best == worst else f"{best}–{worst}"


def summary_lines(submission: Json, board: Json | None, *, with_next: bool = True) -> Iterator[str]:
    """Yield the status of a submission, its scores and rank, and the next step if `with_next`.
    `board` is the board of its track; it may be empty. With None the rank is left out.
    """
    far = progress_text(submission)
    yield f"{submission['name']} ({submission['track']}): {far}"
    reason = submission.get("reason", "")
    if reason and reason not in far:
        yield reason
    if submission["status"] == "planned":
        for width, option in submission["plan"].get("options", {}).items():
            yield (
                f"  ±{share_in_percent(width)} %: {option['new']:,} new questions, "
                f"about ${option.get('expected', option['at_most'])}, at most ${option['at_most']}"
            )
    shown = board or {}
    systems = {system["submission"]: system for system in shown.get("systems", ())}
    system = systems.get(submission["id"])
    figures = _board_figures(submission, system, shown.get("columns", ()))
    yield from _figure_lines(figures, submission["judging"]["labels"])
    if submission["status"] in ("judging", "scored") and board is not None:
        ranked = [row for row in systems.values() if rank_text(row) and row["role"] != "reference"]
        yield _rank_sentence(submission, system, len(ranked))
    if with_next:
        yield from _next_command_lines(submission)


def _figure_lines(figures: list[tuple[str, Json | None]], n_labels: int) -> Iterator[str]:
    """Yield each figure in a line with its label; for a missing one its note."""
    if any(figure and figure.get("value") is not None for _, figure in figures):
        yield f"By {n_labels:,} judgments, each figure with its 80 % interval:"
    widest = max((len(label) for label, _ in figures), default=0)
    for label, figure in figures:
        line, note = percent_with_interval(figure), (figure or {}).get("note", "")
        if line == "–" and note:
            line = f"{line}  {note}"
        yield f"  {label:{widest}}  {line}"


def _board_figures(
    submission: Json, system: Json | None, columns: Any
) -> list[tuple[str, Json | None]]:
    """Return the figures of a run by label: from the board, or from the run itself if the board
    does not list it.
    """
    if system is not None:
        return [(column["label"], system[column["name"]]) for column in columns]
    labels = {column["name"]: column["label"] for column in columns}
    scores = [score for score in submission["scores"] if score["method"] == "centred"]
    score_of: dict[str, Json] = {}
    for score in scores:
        if score["criterion"] == scores[0]["criterion"]:
            score_of.setdefault(score["quantity"], score)
    if not labels:
        return list(score_of.items())
    return [
        (label, score_of[quantity]) for quantity, label in labels.items() if quantity in score_of
    ]


def _rank_sentence(submission: Json, system: Json | None, n_ranked: int) -> str:
    if system is not None and rank_text(system):
        ranked = rank_text(system)
        return f"Rank {ranked} of {n_ranked} on the board of {submission['track']}."
    if submission["status"] == "judging":
        return "It has a rank once its sample is judged."
    if submission["private"]:
        return "It is private: it stands on no board and has no rank."
    return f"It has no rank on the board of {submission['track']}."


def _next_command_lines(submission: Json) -> Iterator[str]:
    """Yield the commands that the owner of a submission can run now."""
    number, track, status = submission["id"], submission["track"], submission["status"]
    if not submission.get("own", True):
        whose = "anonymous" if submission.get("anonymous") else f"of {submission['team']}"
        yield f"It is {whose}. `kbpo scores {track}` is the board."
    elif status in UNDER_WAY:
        yield f"Next: `kbpo status {number} --watch` waits until it needs you or is scored."
    elif status == "planned" and submission.get("why_not"):
        yield submission["why_not"]
    elif status == "planned" and submission["counts"].get("errors"):
        errors = submission["counts"]["errors"]
        lines = "1 line has an error" if errors == 1 else f"{errors:,} lines have errors"
        yield f"{lines}: `kbpo problems {number}` lists them."
        yield (
            f"Next: correct it, or `kbpo confirm {number} --good-lines-only` for the other lines."
        )
    elif status == "planned":
        yield f"Next: `kbpo confirm {number}` begins the judging."
    elif status == "refused":
        yield f"Next: `kbpo problems {number}` lists the errors. Submit the corrected file."
    elif status == "expired":
        yield "Next: submit the file again; the plan that nobody confirmed is gone."
    elif status == "failed":
        yield f"Next: `kbpo retry {number}` tries it again."
    elif status == "scored":
        yield from _next_command_lines_when_scored(submission)


def _next_command_lines_when_scored(submission: Json) -> Iterator[str]:
    number, track = submission["id"], submission["track"]
    yield f"Next: `kbpo errors {number}` lists its judgments, `kbpo scores {track}` is the board."
    if submission["private"]:
        yield f"`kbpo publish {number}` shows it to everybody."
    options = (submission["further"] or {}).get("options", {})
    if options:
        width, option = max(options.items(), key=lambda pair: float(pair[0]))
        yield (
            f"`kbpo order {number} --half-width {float(width):g}` brings its interval to"
            f" ±{share_in_percent(width)} points, for at most ${option['at_most']}."
        )
    yield f"`kbpo status {number} --long` has every figure of it."


def full_report_lines(submission: Json) -> Iterator[str]:
    """Yield every figure of a submission, by criterion and distribution."""
    scores = [score for score in submission["scores"] if score["method"] == "centred"]
    widest = max((len(score["quantity"]) for score in scores), default=0)
    for score in scores:
        view = f"{score['criterion']}, {score['distribution']}"
        yield f"  {score['quantity']:{widest}} {percent_with_interval(score):24} {view}"
