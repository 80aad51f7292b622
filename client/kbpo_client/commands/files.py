"""Commands of files: the log-in, the download of inputs, and runs that are read and uploaded."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any

import click

from formats.corpus import read_corpus
from formats.doors import read_claims
from formats.inputs import read_inputs
from formats.lookup import DocumentView, MemoryCorpus
from formats.messages import FormatError, Message, Report
from formats.opening import Limits, open_text
from formats.outputs import read_outputs
from formats.schema import load_schema
from kbpo_client.client import Refused, Unreachable
from kbpo_client.commands.printing import (
    print_json,
    print_messages,
    print_rows,
    progress_bar,
    status_printer,
)
from kbpo_client.commands.service import (
    ERRORS_IN_FILE,
    Service,
    end_with_error,
    json_option,
    save_token,
    service_of,
)
from kbpo_client.summary import UNDER_WAY, share_in_percent, summary_lines

DOCUMENTS = "documents.jsonl.gz"
INPUTS = "inputs.jsonl.gz"
MENTIONS = "mentions.jsonl.gz"
SCHEMA = "schema.json"
"""Names of the files that `kbpo download` writes"""


@dataclass
class Reading:
    """The result of reading a file."""

    items: str
    """The items of a line: relations, or outputs"""
    usable_items: int
    errors: int
    warnings: int
    messages: list[Message] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        """Return whether the service accepts the file: it has usable items and no errors."""
        return self.usable_items > 0 and not self.errors


def read_run(path: Path, folder: Path) -> Reading:
    """Return the result of reading a run with the files that `kbpo download` stored in a folder.
    Raises OSError and FormatError; FileNotFoundError without these files.
    """
    limits, report = Limits(), Report()
    items: Iterable[object]
    if (folder / INPUTS).exists():
        passages_of = _read_passage_counts(folder / INPUTS, limits)
        lines = open_text(path, limits.for_outputs(), report)
        kind, items = "outputs", read_outputs(lines, passages_of, limits, report)
    else:
        for needed in (DOCUMENTS, SCHEMA):
            if not (folder / needed).exists():
                raise FileNotFoundError(str(folder / needed))
        mentions = folder / MENTIONS
        types = _mention_types(mentions) if mentions.exists() else {}
        corpus = MemoryCorpus(_read_documents(folder / DOCUMENTS, limits, types))
        schema = load_schema(folder / SCHEMA)
        kind, items = "relations", read_claims(path, corpus, schema, limits, report)
    n_items = sum(1 for _ in items)
    return Reading(
        items=kind,
        usable_items=0 if report.fatal else n_items,
        errors=report.errors,
        warnings=report.by_severity["warning"],
        messages=list(report),
    )


def _read_passage_counts(path: Path, limits: Limits) -> dict[str, int]:
    """Return the number of passages of each input. Raises OSError for an invalid file."""
    report = Report()
    inputs = read_inputs(open_text(path, limits.for_corpus(), report), limits, report)
    passages_of = {row.input_id: len(row.passages) for row in inputs}
    if report.errors:
        raise OSError(f"{path} holds no inputs: {next(iter(report)).text}")
    return passages_of


def _mention_types(path: Path) -> dict[str, dict[tuple[int, int], str]]:
    """Return the types of the corpus's mentions by document and span."""
    types: dict[str, dict[tuple[int, int], str]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            types[record["id"]] = {(begin, end): kind for begin, end, kind in record["mentions"]}
    return types


def _read_documents(
    path: Path, limits: Limits, types: dict[str, dict[tuple[int, int], str]]
) -> Iterator[DocumentView]:
    """Yield the documents of a corpus file. Raises OSError for an invalid file."""
    report, large = Report(), limits.for_corpus()
    for record in read_corpus(open_text(path, large, report), large, report):
        yield DocumentView.from_record(record, types.get(record.id))
    if report.errors:
        raise OSError(f"{path} is no corpus: {next(iter(report)).text}")


@click.command()
@json_option
@service_of
def tracks(service: Service, as_json: bool) -> None:
    """List the tracks."""
    with service.client() as client:
        listed = client.tracks()
    print_rows(
        listed,
        as_json,
        ["track", "name", "status", "target"],
        lambda track: [
            track["slug"],
            track["name"],
            track["status"],
            f"±{share_in_percent(track['target_half_width'])} %",
        ],
    )


@click.command()
@click.argument("track")
@click.option("--to", type=click.Path(path_type=Path, file_okay=False), help="Else ./TRACK/")
@json_option
@service_of
def download(service: Service, track: str, to: Path | None, as_json: bool) -> None:
    """Download the inputs of systems: the documents of TRACK and their schema, or its inputs."""
    folder = to or Path(track)
    with service.client() as client:
        schema = client.schema(track)
        folder.mkdir(parents=True, exist_ok=True)
        files = {"documents": DOCUMENTS if schema.get("predicates") else INPUTS}
        if "mention_types" in client.track(track)["corpus"]["links"]:
            files["mentions"] = MENTIONS
        for kind, name in files.items():
            with progress_bar(name) as tell:
                client.download(track, folder / name, what=kind, tell=tell)
    if schema.get("predicates"):
        text = json.dumps(schema, indent=1, ensure_ascii=False)
        (folder / SCHEMA).write_text(text, encoding="utf-8")
        files["schema"] = SCHEMA
    if as_json:
        print_json({kind: folder / name for kind, name in files.items()})
    elif "schema" in files:
        click.echo(f"The documents and the schema are in {folder}/.")
    else:
        click.echo(f"The inputs are in {folder}/.")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--track", help="A track that was downloaded into ./TRACK/")
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Where it lies")
@json_option
def validate(file: Path, track: str | None, data: Path | None, as_json: bool) -> None:
    """Read FILE as the service would, without a connection."""
    folder = data or (Path(track) if track else None)
    if folder is None:
        raise click.UsageError("Say --track, or --data with what `kbpo download` wrote.")
    try:
        reading = read_run(file, folder)
    except FileNotFoundError as missing:
        end_with_error(f"There is no {missing}. `kbpo download {track or 'TRACK'}` fetches it.", 2)
    except (OSError, FormatError, ValueError) as error:
        end_with_error(str(error), ERRORS_IN_FILE)
    show_reading(reading, as_json)
    sys.exit(0 if reading.usable else ERRORS_IN_FILE)


def show_reading(reading: Reading, as_json: bool) -> None:
    """Print the messages of a reader by line, and whether the service would accept the file."""
    messages = [
        {name: getattr(message, name) for name in ("code", "severity", "line", "text")}
        for message in sorted(reading.messages, key=attrgetter("line"))
    ]
    if as_json:
        summary = asdict(reading) | {"usable": reading.usable, "messages": messages}
        summary[summary.pop("items")] = summary.pop("usable_items")
        print_json(summary)
        return
    print_messages(messages)
    counts = (
        (reading.usable_items, reading.items.removesuffix("s")),
        (reading.errors, "error"),
        (reading.warnings, "warning"),
    )
    words = (f"{n:,} {noun}{'' if n == 1 else 's'}" for n, noun in counts)
    verdict = (
        "The service would take it as it is." if reading.usable else "It needs corrections first."
    )
    click.echo(f"{', '.join(words)}. {verdict}")


@click.command()
@click.argument("track")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--name", required=True, help="What the run is called on the board.")
@click.option("--description", default="", help="A sentence on how the system works.")
@click.option("--team", default="", help="Which of your teams, by its slug; else the first.")
@click.option("--paper", default="", help="Address of the paper.")
@click.option("--code", default="", help="Address of the code.")
@click.option(
    "--private",
    is_flag=True,
    help=(
        "Only your team sees it until `kbpo publish`; a data release contains it without its name."
    ),
)
@click.option("--anonymous", is_flag=True, help="Others see a number in place of names.")
@click.option("--again", is_flag=True, help="Yes, although the same file is there already.")
@click.option(
    "--wait/--no-wait",
    default=None,
    help="Wait until the file is read and planned; in a terminal that is the default.",
)
@json_option
@service_of
def submit(
    service: Service,
    /,
    track: str,
    file: Path,
    name: str,
    wait: bool | None,
    as_json: bool,
    **said: Any,
) -> None:
    """Upload FILE to TRACK. Nothing is spent before `kbpo confirm`.

    Ends with 0 once the file is stored, even if problems are found in it.
    """
    waits = sys.stdout.isatty() and not as_json if wait is None else wait
    with service.client() as client:
        with progress_bar(file.name, file.stat().st_size) as tell:
            submission = client.submit(track, file, name, tell=tell, **said)
        number = submission["id"]
        click.echo(f"Submission {number} is stored.", err=True)
        if waits:
            try:
                submission = client.wait(number, seconds=1.0, tell=status_printer())
            except (KeyboardInterrupt, Refused, Unreachable) as trouble:
                click.echo(f"{trouble or 'Stopped watching.'} The service goes on.", err=True)
    if as_json:
        print_json(submission)
        return
    if reason := submission.get("reason"):
        click.echo(reason)
    if submission["status"] in UNDER_WAY:
        click.echo(f"`kbpo status {number} --watch` shows its price once it is planned.")
    else:
        click.echo("\n".join(summary_lines(submission | {"reason": ""}, {})))


@click.command()
@click.option("--token", help="Else it is asked for, or read from what is piped in.")
@json_option
@service_of
def login(service: Service, token: str | None, as_json: bool) -> None:
    """Store a token for this service, if the service accepts it."""
    if token is None and sys.stdin.isatty():
        token = str(click.prompt("Token (from your account page)", hide_input=True))
    token = token or sys.stdin.readline().strip()
    if not token:
        raise click.UsageError("Which token? Say --token, or pipe it in.")
    service.token, service.token_advice = token.strip(), "Then run `kbpo login` again with it."
    with service.client() as client:
        client.submissions()
    kept_in = save_token(service.url, token.strip())
    if as_json:
        print_json({"url": service.url, "kept_in": kept_in})
    else:
        click.echo(f"Kept in {kept_in}.")


COMMANDS = (login, tracks, download, validate, submit)
