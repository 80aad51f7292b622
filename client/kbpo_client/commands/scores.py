"""Commands of scores: the board, comparisons, slices, metrics, single predictions, and releases."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from textwrap import wrap
from typing import Any, cast

import click

from kbpo_client.commands.printing import (
    SHOWN_CHARACTERS,
    print_json,
    print_rows,
    print_table,
    progress_bar,
)
from kbpo_client.commands.service import (
    ERRORS_IN_FILE,
    REFUSED,
    RUN,
    Service,
    end_with_error,
    json_option,
    service_of,
)
from kbpo_client.summary import percent_with_interval, rank_text
from scoring import rescore as rescoring
from scoring.release import BadRelease, Release

FIGURES = ("worth", "systems", "width", "judgments", "prompts")
SHORT = 24
"""Characters of a metric's version in a line; the rest is printed below"""
OF_WORTH = ("pearson", "spearman", "rho", "prmse", "saves")
"""Columns of a metric's worth that are printed; --json has all of them"""
BY_RELATION = "for all of them at once; {left_out} left out, of fewer than {least} judgments"

POPULATION = click.option(
    "--population",
    type=click.Choice(["like", "these"]),
    help="What intervals of texts hold for: inputs like these, or these alone.",
)


@click.command()
@click.argument("track")
@click.option("--distribution")
@click.option("--criterion")
@POPULATION
@click.option("--sort")
@click.option("--evaluation", help="As the evaluation of this number left it.")
@json_option
@service_of
def scores(service: Service, /, track: str, as_json: bool, **switches: str | None) -> None:
    """Show the leaderboard of TRACK, each figure with its 80 % interval."""
    with service.client() as client:
        board = client.board(track, **{key: value for key, value in switches.items() if value})
    if as_json:
        print_json(board)
        return
    lines = []
    for system in board["systems"]:
        name = f"{system['team']} {system['name']}"
        figures = [percent_with_interval(system[column["name"]]) for column in board["columns"]]
        lines.append([rank_text(system), name, str(system["submission"]), *figures])
    if not lines:
        click.echo(f"No run stands on the board of {track} yet.")
        return
    heads = [column["label"] for column in board["columns"]]
    print_table(["rank", "system", "number", *heads], lines)
    print_population(board)


@click.command()
@click.argument("number", type=RUN)
@json_option
@service_of
def slices(service: Service, number: int, as_json: bool) -> None:
    """Show the scores of submission NUMBER by relation, by class of entity and so on."""
    with service.client() as client:
        scores = cast(list[dict[str, Any]], client.slices(number))
    print_rows(
        scores,
        as_json,
        ["slice", "figure", "80 %", "predictions"],
        lambda row: [
            row["slice"],
            f"{row['quantity']}, {row['criterion']}, {row['distribution']}",
            percent_with_interval(row),
            f"{row['n_predictions'] or 0:,}",
        ],
    )


@click.command()
@click.argument("track")
@click.argument("a", type=RUN)
@click.argument("b", type=RUN)
@click.option("--distribution")
@click.option("--criterion")
@POPULATION
@click.option("--evaluation", help="As the evaluation of this number left it.")
@json_option
@service_of
def compare(
    service: Service, /, track: str, a: int, b: int, as_json: bool, **switches: str | None
) -> None:
    """Show how submissions A and B of TRACK differ."""
    with service.client() as client:
        chosen = {key: value for key, value in switches.items() if value}
        compared = client.compare(track, a, b, **chosen)
    if as_json:
        print_json(compared)
        return
    if not compared["differences"] and compared.get("why"):
        click.echo(compared["why"])
        return
    print_table(*comparison_table(compared))
    print_population(compared)
    by_relation = compared.get("by_relation")
    if by_relation and by_relation["differences"]:
        click.echo(f"\nBy relation, {BY_RELATION.format(**by_relation)}:")
        print_table(*comparison_table(compared | by_relation))
    for part in compared.get("overlap", ()):
        click.echo(overlap_text(compared, part))


def print_population(answer: dict[str, Any]) -> None:
    """Print whether the intervals are about these inputs or about inputs like these, for tracks of
    texts.
    """
    words = {"like": "inputs like these", "these": "these inputs alone"}
    if answer.get("population") in words:
        click.echo(f"The intervals hold for {words[answer['population']]}.")


def overlap_text(compared: dict[str, Any], part: dict[str, Any]) -> str:
    """Return a part of the overlap of two systems in a line."""
    systems = "both predict it"
    if part["of"] != "both":
        systems = f"only {compared[part['of']]['team']} {compared[part['of']]['name']}"
    judged = f"{percent_with_interval(part['share'])} right, {part['judged']} judged"
    return f"{systems}: {part['n']:,}, {judged if part['share'] else part['why']}"


def comparison_table(compared: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return header and lines of a comparison, with the systems by team and name."""
    names = [f"{compared[side]['team']} {compared[side]['name']}" for side in ("a", "b")]
    lines = []
    for difference in compared["differences"]:
        low, high = 100 * difference["low80"], 100 * difference["high80"]
        shown = "no difference shown"
        if low > 0 or high < 0:
            shown = f"{names[0] if low > 0 else names[1]} is higher"
        points = f"{100 * difference['difference']:+.1f} ({low:+.1f} to {high:+.1f})"
        scores = [percent_with_interval(difference[side]) for side in ("a", "b")]
        lines.append([difference["label"], shown, *scores, points])
    return ["", "", *names, "points, 80 %"], lines


@click.command()
@click.argument("track")
@click.option("--figure", type=click.Choice(FIGURES), default="worth", help="Which table.")
@click.option("--criterion", default="", help="Else that by which TRACK is ranked.")
@json_option
@service_of
def metrics(service: Service, track: str, figure: str, criterion: str, as_json: bool) -> None:
    """Show the worth of the metrics and judges of TRACK, or each question (`--figure prompts`): a
    worth of 1.26 means that 100 judgments with the metric are as informative as 126 without.
    """
    with service.client() as client:
        rows = cast(list[dict[str, Any]], client.metrics(track, figure, criterion))
    if as_json:
        print_json(rows)
    elif not rows:
        click.echo("Nothing is known of that yet.")
    elif figure == "worth":
        lines = []
        for row in rows:
            version, *more = wrap(row["version"], SHORT) or [""]
            figures = [number_text(row[key]) for key in OF_WORTH]
            lines.append([row["metric"], version, worth_text(row), *figures])
            lines += [["", rest, *[""] * (1 + len(OF_WORTH))] for rest in more]
        print_table(["metric", "version", "worth, 80 %", *OF_WORTH], lines)
    else:
        print_table(list(rows[0]), [[number_text(value) for value in row.values()] for row in rows])


def worth_text(row: dict[str, Any]) -> str:
    """Return the worth of a metric with its 80 % interval, as “1.26 (1.12–1.41)”."""
    if row["worth"] is None or row["low80"] is None:
        return number_text(row["worth"], 2)
    return f"{row['worth']:.2f} ({row['low80']:.2f}–{row['high80']:.2f})"


def number_text(value: Any, decimals: int = 3) -> str:
    """Return a value of a table as text: a dash if it is missing; texts and whole numbers are
    unchanged.
    """
    if value is None:
        return "–"
    return f"{value:.{decimals}f}" if isinstance(value, float) else str(value)


MISSED = "Instead what is true and not in it: what others found, or nobody did."
VERDICTS = ("all", "right", "wrong", "undecided", "judged", "unjudged", "disputed")
PARTS = ("any", "relation", "subject", "object")
SORTS = ("text", "sure", "unsure", "worst", "most")
WHO_FOUND = {"others": "missed", "nobody": "nobody"}
"""Options of `errors --missed` -> the service's values"""


@click.command()
@click.argument("number", type=RUN)
@click.option("--verdict", type=click.Choice(VERDICTS), help="All that are judged, or some.")
@click.option("--part", type=click.Choice(PARTS), help="Which part is wrong.")
@click.option("--predicate", "relation", help="Of one relation.")
@click.option("--entity", help="Name of the subject or object, or words of it.")
@click.option("--votes", type=click.Choice(["split"]), help="People were divided.")
@click.option("--who", type=click.Choice(["alone"]), help="No other system says so.")
@click.option("--document", help="In one document.")
@click.option("--q", help="Words of the text.")
@click.option("--sort", type=click.Choice(SORTS), help="With --missed text or most, else not most.")
@click.option("--missed", type=click.Choice(["others", "nobody"]), help=MISSED)
@json_option
@service_of
def errors(
    service: Service,
    /,
    number: int,
    verdict: str | None,
    missed: str | None,
    as_json: bool,
    **filters: str | None,
) -> None:
    """Show the judged predictions of submission NUMBER that are wrong, one by one. On tracks with
    ratings, shows all rated predictions, the worst first. Options select other predictions.
    """
    chosen = {name: value for name, value in filters.items() if value}
    with service.client() as client:
        if missed:
            print_missed_facts(client.missed(number, who=WHO_FOUND[missed], **chosen), as_json)
            return
        if verdict is None:
            judged = client.errors(number, **chosen)
        else:
            wanted = "judged" if verdict == "all" else verdict
            judged = client.judgments(number, verdict=wanted, **chosen)
    if as_json:
        print_json(judged)
        return
    for prediction in judged:
        click.echo("\n".join(prediction_as_lines(prediction)))
    click.echo(f"{len(judged):,} predictions.")


def prediction_as_lines(prediction: dict[str, Any]) -> tuple[str, str]:
    """Return a prediction in two lines: its number and text, and its judgment."""
    marks = {True: "✓", False: "✗", None: "?"}
    where = prediction.get("document") or prediction.get("input") or f"line {prediction['line']}"
    words = " ".join(str(prediction.get("claim", prediction.get("text", ""))).split())
    if len(words) > SHOWN_CHARACTERS:
        words = f"{words[:SHOWN_CHARACTERS]}…"
    verdicts = [
        f"{marks[right]} {part.removesuffix('_right')}"
        for part, right in prediction.items()
        if part.endswith("_right")
    ]
    for criterion, opinion in prediction.get("said", {}).items():
        verdicts.append(
            f"{criterion} {'–' if opinion['value'] is None else format(opinion['value'], '.2f')}"
        )
    said = "  ".join([*verdicts, prediction["votes"]]).rstrip()
    return f"{prediction['prediction']}  {where}  {words}", f"    {said}"


def print_missed_facts(facts: list[dict[str, Any]], as_json: bool) -> None:
    """Print true facts that a run does not predict."""
    if as_json:
        print_json(facts)
        return
    for fact in facts:
        found_by = ", ".join(str(number) for number in fact["found_by"]) or "nobody"
        click.echo(f"{fact['document']}  {fact['claim']}\n    found by {found_by}")
    click.echo(f"{len(facts):,} facts.")


@click.command()
@click.argument("number", type=RUN)
@click.argument("prediction", type=int)
@click.option("--note", required=True, help="What is wrong, in a sentence.")
@json_option
@service_of
def dispute(service: Service, number: int, prediction: int, note: str, as_json: bool) -> None:
    """Dispute the judgment of PREDICTION of submission NUMBER: an expert judges it blind.

    `kbpo errors NUMBER` begins each prediction with its number; `--verdict all` has all of them.
    """
    with service.client() as client:
        disputed = client.dispute(number, prediction, note)
    if as_json:
        print_json(disputed)
    else:
        click.echo("An expert is asked.")


@click.command()
@click.argument("track")
@click.option("--number", type=int, help="Which one; else the latest.")
@click.option("--to", type=click.Path(path_type=Path), help="Another folder than this one.")
@json_option
@service_of
def release(
    service: Service, track: str, number: int | None, to: Path | None, as_json: bool
) -> None:
    """Download a release of TRACK: all data of its board, for `kbpo rescore`."""
    with service.client() as client:
        released = client.releases(track)
        by_number = {kept["number"]: kept for kept in released}
        if not released or number not in (None, *by_number):
            numbers = ", ".join(map(str, by_number)) or "none yet"
            end_with_error(f"There is no such release of {track}; there are: {numbers}.", REFUSED)
        wanted = released[0] if number is None else by_number[number]
        folder = to or Path()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / wanted["file"]
        with progress_bar(path.name, wanted["size"]) as tell:
            client.download_release(wanted, path, tell=tell)
    if as_json:
        print_json(wanted | {"path": path})
    else:
        click.echo(f"{path}: `kbpo rescore {path}` computes its board.")


@click.command()
@click.argument("release", type=click.Path(path_type=Path, exists=True))
@json_option
def rescore(release: Path, as_json: bool) -> None:
    """Recompute the board of RELEASE (a directory or its zip file) offline, and compare.

    Ends with 0 if every number agrees to 10 significant digits, with 3 if some differ; these are
    listed.
    """
    try:
        rescored = rescoring.rescore_release(Release(release))
    except BadRelease as bad:
        end_with_error(str(bad), ERRORS_IN_FILE)
    if as_json:
        print_json(asdict(rescored) | {"agrees": rescored.agrees})
    else:
        _print_rescored(rescored)
    if not rescored.agrees:
        sys.exit(ERRORS_IN_FILE)


def _print_rescored(rescored: rescoring.Rescored) -> None:
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


COMMANDS = (scores, slices, compare, metrics, errors, dispute, release, rescore)
