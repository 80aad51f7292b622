"""Writes sentences about the error of judgments, next to scores and boards."""

from __future__ import annotations

from typing import Any

from annotation.quality.agreement import NOT_KEPT, Reliability, reliability_of_track
from kbpo.evaluation.judges import MOST_OF_ONE, judge_statistics
from kbpo.evaluation.leaderboard import Board
from kbpo.tracks.base import Words
from kbpo.tracks.registry import kind_of
from kbpo.web.components.figures import count_text, interval_text, number_text, percent_text
from scoring.rated import FEWEST_JUDGES
from scoring.report import Figure, Judges
from scoring.words import ALL_JUDGED, MEANS, no_width_text

SAMPLING_ONLY = "The intervals cover sampling only, not the judges’ errors."
CORRECTED = "“Corrected” intervals include the judges’ errors; the others cover sampling only."
RATINGS = "The intervals include differences between people, but no error that all of them make."
CORRECTED_RATINGS = "“Corrected” intervals include that, too."
TOO_FEW = "Scores with too few checks are not corrected; the system’s page gives the reason."
ONE_RATER = "All ratings are by one person, so systems are not ranked."
FEW_RATERS = (
    "Scores and ranks are for these judges only: {} people gave the ratings, too few to generalise."
)
ONE_RATER_GAVE_HALF = "One person gave more than half of the ratings, so systems are not ranked."
UNKNOWN_RATERS = "The author of {} is unknown: if many are by one person, intervals are too narrow."
UNCHECKED = "No expert has checked any of these judgments yet."


def board_reliability_sentences(board: Board) -> list[str]:
    """Return the sentences below a board; none before its first scores."""
    if not board.rows:
        return []
    judges, people = judge_statistics(board.evaluation), reliability_for_board(board)
    checks = _expert_sentence(board)
    if judges.in_interval:
        sentences = [RATINGS, *([CORRECTED_RATINGS] if checks else [])]
        sentences += [
            *_noise_sentences(judges),
            *_difference_sentences(judges, kind_of(board.track).words),
        ]
        sentences += _rater_sentences(judges)
        sentences += _reliability_sentences(people)
    else:
        sentences = [CORRECTED if checks else SAMPLING_ONLY]
        if any(figure.is_exact for row in board.rows for figure in row.figures.values()):
            sentences.append(f"“{ALL_JUDGED.capitalize()}” means: {MEANS}")
        sentences += [
            _agreement_sentence(judges, "about what these systems predict"),
            *_reliability_sentences(people),
        ]
    if not kind_of(board.track).words.unchecked:
        sentences.append(checks or UNCHECKED)
    if checks and not all(row.n_checked for row in board.rows):
        sentences.append(TOO_FEW)
    return sentences


def reliability_for_board(board: Board) -> Reliability:
    """Return the current reliability of the annotators; none for a board of the past."""
    return NOT_KEPT if board.past else reliability_of_track(board.track)


def _expert_sentence(board: Board) -> str:
    """Return a sentence on how far experts agree with the judgments of a track; empty without
    checks.
    """
    checks = board.report.expert.get(board.criterion)
    if checks is None or not checks.checked or checks.agree.value is None:
        return ""
    checked, agree, above = count_text(checks.checked), checks.agree, checks.above
    share, ends = percent_text(agree.value), interval_text(agree.low80, agree.high80)
    if above is None:
        return (
            f"Experts checked {checked} judgments, drawn at random, and agree with {share} of all"
            f" (80 % interval {ends})."
        )
    return (
        f"Experts checked {checked} judgments, drawn at random. They would give the same rating in"
        f" {share} of all (80 % interval {ends}); on average theirs differ by"
        f" {number_text(above.value, signed=True)} points of 100"
        f" ({interval_text(above.low80, above.high80)})."
    )


def run_reliability_sentences(
    judges: Judges,
    people: Reliability,
    printed: Figure | None,
    *,
    corrected: Figure | None,
    checked: bool,
    words: Words,
) -> list[str]:
    """Return the sentences next to the guaranteed number of a run; none without a number.
    `corrected` is the number after expert checks; with `checked` the page mentions experts
    elsewhere.
    """
    if printed is None or printed.value is None:
        return []
    if judges.in_interval:
        sentences = [RATINGS, *([CORRECTED_RATINGS] if corrected else [])]
        sentences += [
            *_noise_sentences(judges),
            *_difference_sentences(judges, words),
            *_rater_sentences(judges),
        ]
        sentences += _reliability_sentences(people)
    else:
        sentences = [no_width_text()] if printed.is_exact else []
        if corrected is not None:
            sentences.append(
                no_width_text(corrected.n_checked) if corrected.is_exact else CORRECTED
            )
        elif not printed.is_exact:
            sentences.append(SAMPLING_ONLY)
        sentences += [
            _agreement_sentence(judges, "behind its score"),
            *_reliability_sentences(people),
        ]
    if not checked:
        sentences.append(UNCHECKED)
    return sentences


def _agreement_sentence(judges: Judges, subject: str) -> str:
    if judges.agree is None:
        return "Agreement is unknown: no question was answered by two people."
    return (
        f"Of the {count_text(judges.answers)} answers {subject} {percent_text(judges.agree)} agree"
        " with their majority."
    )


def _noise_sentences(judges: Judges) -> list[str]:
    """Return a warning if annotator noise cannot be separated from the variance of a system's
    ratings.
    """
    if judges.is_separable:
        return []
    drawn = count_text(judges.second_drawn) if judges.second_drawn else "none"
    opinions = "second opinion" if judges.second == 1 else "second opinions"
    return [
        f"Annotator noise not separable: {count_text(judges.second)} {opinions}, {drawn} at random."
        " The intervals are upper bounds."
    ]


def _difference_sentences(judges: Judges, words: Words) -> list[str]:
    """Return a sentence on how far two ratings of the same text differ; empty if none was rated
    twice.
    """
    if judges.differ is None:
        return []
    items = words.item if judges.twice == 1 else words.items
    return [
        f"{count_text(judges.twice)} {items} had two judgments or more; two of the same differ by"
        f" {number_text(judges.differ)} points of 100 on average."
    ]


def _rater_sentences(judges: Judges) -> list[str]:
    """Return warnings about few raters, one dominant rater, and ratings of unknown people."""
    sentences = []
    if judges.of_unknown:
        ratings = (
            "one rating" if judges.of_unknown == 1 else f"{count_text(judges.of_unknown)} ratings"
        )
        sentences.append(UNKNOWN_RATERS.format(ratings))
    elif judges.people == 1:
        sentences.append(ONE_RATER)
    elif 0 < judges.people < FEWEST_JUDGES:
        sentences.append(FEW_RATERS.format(judges.people))
    if judges.people > 1 and judges.largest > MOST_OF_ONE:
        sentences.append(ONE_RATER_GAVE_HALF)
    return sentences


def _reliability_sentences(people: Reliability) -> list[str]:
    """Return sentences with Fleiss' κ and the error on questions with known answers, for all
    annotators of a track.
    """
    sentences = []
    if people.kappa is not None:
        sentences.append(
            f"Beyond chance, people on this track agree by Fleiss’ κ = {people.kappa:.2f}."
        )
    if people.gold_error is not None:
        sentences.append(
            f"Of their {count_text(people.gold_answers)} answers to questions whose answer is known"
            f" {percent_text(people.gold_error)} were wrong."
        )
    return sentences


def judges_as_json(judges: Judges, people: Reliability) -> dict[str, Any]:
    """Return the quality of judgments as JSON."""
    return {
        "answers": judges.answers,
        "agreement": judges.agree,
        "judged_twice": judges.twice,
        "difference": judges.differ,
        "people": judges.people,
        "ratings_of_unknown": judges.of_unknown,
        "kappa": people.kappa,
        "gold_answers": people.gold_answers,
        "gold_error": people.gold_error,
    }
