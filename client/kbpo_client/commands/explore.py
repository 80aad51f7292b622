"""Commands of what people said of single predictions."""

from __future__ import annotations

from typing import Any

import click

from kbpo_client.commands.printing import SHOWN_CHARACTERS, show_json
from kbpo_client.commands.service import RUN, Service, json_option, service_of

MISSED = "Instead what is true and not in it: what others found, or nobody did."
VERDICTS = ("all", "right", "wrong", "undecided", "judged", "unjudged", "turned", "disputed")
PARTS = ("any", "relation", "subject", "object")
SORTS = ("text", "sure", "unsure", "worst", "most")
WHO_FOUND = {"others": "missed", "nobody": "nobody"}
"""Options of `errors --missed`, as the service calls them"""


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
            show_missed(client.missed(number, who=WHO_FOUND[missed], **chosen), as_json)
            return
        if verdict is None:
            judged = client.errors(number, **chosen)
        else:
            wanted = "judged" if verdict == "all" else verdict
            judged = client.judgments(number, verdict=wanted, **chosen)
    if as_json:
        show_json(judged)
        return
    for prediction in judged:
        click.echo("\n".join(in_words(prediction)))
    click.echo(f"{len(judged):,} predictions.")


def in_words(prediction: dict[str, Any]) -> tuple[str, str]:
    """Return a prediction in two lines: its number and what it says, and what people said of it."""
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


def show_missed(facts: list[dict[str, Any]], as_json: bool) -> None:
    """Prints what people found true and a run does not predict."""
    if as_json:
        show_json(facts)
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
    """Say that PREDICTION of submission NUMBER is judged wrong: an expert is asked, blind.

    `kbpo errors NUMBER` begins each prediction with its number; `--verdict all` has all of them.
    """
    with service.client() as client:
        disputed = client.dispute(number, prediction, note)
    if as_json:
        show_json(disputed)
    else:
        click.echo("An expert is asked.")


COMMANDS = (errors, dispute)
