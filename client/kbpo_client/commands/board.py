"""Commands of scores: the board, two systems compared, slices, what metrics are worth."""

from __future__ import annotations

from textwrap import wrap
from typing import Any, cast

import click

from kbpo_client.commands.printing import show_json, show_rows, table
from kbpo_client.commands.service import RUN, Service, json_option, service_of
from kbpo_client.telling import percent, rank_of

FIGURES = ("worth", "systems", "width", "judgments", "prompts")
SHORT = 24
"""Characters of a metric's version in a line; the rest stands beneath"""
OF_WORTH = ("pearson", "spearman", "rho", "prmse", "saves")
"""Columns of what a metric is worth that are printed; --json has all of them"""
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
@click.option("--on", help="As it stood at the end of a day: 2026-05-01.")
@click.option("--evaluation", help="As the evaluation of this number left it.")
@json_option
@service_of
def scores(service: Service, /, track: str, as_json: bool, **switches: str | None) -> None:
    """Show the leaderboard of TRACK, each figure with its 80 % interval."""
    with service.client() as client:
        board = client.board(track, **{key: value for key, value in switches.items() if value})
    if as_json:
        show_json(board)
        return
    lines = []
    for system in board["systems"]:
        name = f"{system['team']} {system['name']}"
        figures = [percent(system[column["name"]]) for column in board["columns"]]
        lines.append([rank_of(system), name, str(system["submission"]), *figures])
    if not lines:
        click.echo(f"No run stands on the board of {track} yet.")
        return
    heads = [column["label"] for column in board["columns"]]
    table(["rank", "system", "number", *heads], lines)
    tell_population(board)


@click.command()
@click.argument("number", type=RUN)
@json_option
@service_of
def slices(service: Service, number: int, as_json: bool) -> None:
    """Show the scores of submission NUMBER by relation, by class of entity and so on."""
    with service.client() as client:
        scores = cast(list[dict[str, Any]], client.slices(number))
    show_rows(
        scores,
        as_json,
        ["slice", "figure", "80 %", "predictions"],
        lambda row: [
            row["slice"],
            f"{row['quantity']}, {row['criterion']}, {row['distribution']}",
            percent(row),
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
@click.option("--on", help="As it stood at the end of a day: 2026-05-01.")
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
        show_json(compared)
        return
    if not compared["differences"] and compared.get("why"):
        click.echo(compared["why"])
        return
    table(*comparison_table(compared))
    tell_population(compared)
    by_relation = compared.get("by_relation")
    if by_relation and by_relation["differences"]:
        click.echo(f"\nBy relation, {BY_RELATION.format(**by_relation)}:")
        table(*comparison_table(compared | by_relation))
    for part in compared.get("overlap", ()):
        click.echo(in_part(compared, part))


def tell_population(told: dict[str, Any]) -> None:
    """Prints what intervals of texts hold for."""
    words = {"like": "inputs like these", "these": "these inputs alone"}
    if told.get("population") in words:
        click.echo(f"The intervals hold for {words[told['population']]}.")


def in_part(told: dict[str, Any], part: dict[str, Any]) -> str:
    """Return what both systems predict, or one of them alone, in a line."""
    systems = "both say it"
    if part["of"] != "both":
        systems = f"only {told[part['of']]['team']} {told[part['of']]['name']}"
    judged = f"{percent(part['share'])} right, {part['judged']} judged"
    return f"{systems}: {part['n']:,}, {judged if part['share'] else part['why']}"


def comparison_table(told: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the lines of a comparison, with its systems by team and name."""
    names = [f"{told[side]['team']} {told[side]['name']}" for side in ("a", "b")]
    lines = []
    for difference in told["differences"]:
        low, high = 100 * difference["low80"], 100 * difference["high80"]
        shown = "no difference shown"
        if low > 0 or high < 0:
            shown = f"{names[0] if low > 0 else names[1]} is higher"
        points = f"{100 * difference['difference']:+.1f} ({low:+.1f} to {high:+.1f})"
        scores = [percent(difference[side]) for side in ("a", "b")]
        lines.append([difference["label"], shown, *scores, points])
    return ["", "", *names, "points, 80 %"], lines


@click.command()
@click.argument("track")
@click.option("--figure", type=click.Choice(FIGURES), default="worth", help="Which table.")
@click.option("--criterion", default="", help="Else that by which TRACK is ranked.")
@json_option
@service_of
def metrics(service: Service, track: str, figure: str, criterion: str, as_json: bool) -> None:
    """Show what the metrics and judges of TRACK are worth, or each question (`--figure prompts`):
    worth 1.26 means that 100 judgments with it tell as much as 126 without.
    """
    with service.client() as client:
        rows = cast(list[dict[str, Any]], client.metrics(track, figure, criterion))
    if as_json:
        show_json(rows)
    elif not rows:
        click.echo("Nothing is known of that yet.")
    elif figure == "worth":
        lines = []
        for row in rows:
            version, *more = wrap(row["version"], SHORT) or [""]
            figures = [number(row[key]) for key in OF_WORTH]
            lines.append([row["metric"], version, worth(row), *figures])
            lines += [["", rest, *[""] * (1 + len(OF_WORTH))] for rest in more]
        table(["metric", "version", "worth, 80 %", *OF_WORTH], lines)
    else:
        table(list(rows[0]), [[number(value) for value in row.values()] for row in rows])


def worth(row: dict[str, Any]) -> str:
    """Return what a metric is worth with its 80 % interval, as “1.26 (1.12–1.41)”."""
    if row["worth"] is None or row["low80"] is None:
        return number(row["worth"], 2)
    return f"{row['worth']:.2f} ({row['low80']:.2f}–{row['high80']:.2f})"


def number(value: Any, decimals: int = 3) -> str:
    """Return a value of a table: a dash where there is none, texts and whole numbers as they
    are.
    """
    if value is None:
        return "–"
    return f"{value:.{decimals}f}" if isinstance(value, float) else str(value)


COMMANDS = (scores, slices, compare, metrics)
