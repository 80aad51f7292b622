"""The command line: one command a thing that a researcher does."""

from __future__ import annotations

import errno
import json as json_module
import shutil
import sys
import time
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import IO, Any, NoReturn, cast

import click

from formats.messages import FormatError
from kbpo_client import settings
from kbpo_client.client import Client, Refused, Unreachable
from kbpo_client.judging import Judge, JudgeFailed, judge_all
from kbpo_client.reading import DOCUMENTS, INPUTS, MENTIONS, SCHEMA, Reading, read_run
from kbpo_client.telling import how_far, in_full, on_one_screen, percent, rank_of
from scoring import rescore as rescoring
from scoring.release import BadRelease, Release

ACCOUNT_PAGE = "your account page"
"""As the service's sentences call it"""
REFUSED, ERRORS_IN_FILE, UNREACHABLE = 1, 3, 4
"""Exit codes besides 0 and click's own 2 for a command that was not understood"""
SHOWN_MESSAGES = 50
SHOWN_CHARACTERS = 160
"""Of a text in a line"""
MISSED = "Instead what is true and not in it: what others found, or nobody did."
ENDED = {"refused", "failed", "expired", "withdrawn"}
"""Statuses in which a submission has ended without a score"""
VERDICTS = "all (that are judged), right, wrong, undecided, unjudged, turned or disputed."
MOVED = {"reserve": "set aside", "spend": "spent", "release": "given back"}
"""Directions of money, as the service calls them, in words"""
WHO_FOUND = {"others": "missed", "nobody": "nobody"}
"""Options of `errors --missed`, as the service calls them"""

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print what the service said, as JSON."
)


class Service:
    """The service that a command speaks to: its address, and how it is told what went wrong."""

    def __init__(self, url: str | None, token: str | None) -> None:
        self.url = (url or "").rstrip("/")
        self.token = token
        self.then = "Then say it with --token or KBPO_TOKEN." if token else "`kbpo login` keeps it."

    @contextmanager
    def client(self) -> Iterator[Client]:
        """A connection; what goes wrong ends the command with a sentence and a code of its own."""
        if not self.url:
            raise click.UsageError("Which service? Say --url, or set KBPO_URL.")
        token = self.token or settings.tokens().get(self.url, "")
        tell = partial(click.echo, err=True)

        def tell_token(refusal: Refused) -> None:
            tell(f"{self.in_words(refusal)} This goes on without it.")

        try:
            with Client(
                self.url, token, frames=False, tell_wait=tell, tell_token=tell_token
            ) as client:
                yield client
        except Refused as refusal:
            end(self.in_words(refusal), REFUSED)
        except Unreachable as error:
            end(str(error), UNREACHABLE)

    def in_words(self, refusal: Refused) -> str:
        """A refusal, with the address of the page that it speaks of, and what to do with the token
        that is made there.
        """
        sentence = str(refusal).replace(ACCOUNT_PAGE, f"{ACCOUNT_PAGE}, {self.url}/account/")
        return f"{sentence} {self.then}" if refusal.status == 401 else sentence


service_of = click.make_pass_decorator(Service)


def end(sentence: str, code: int) -> NoReturn:
    """Ends the command with a sentence on the error stream and an exit code."""
    click.echo(sentence, err=True)
    sys.exit(code)


def show_json(told: Any) -> None:
    """Prints what the service said."""
    click.echo(json_module.dumps(told, indent=2, ensure_ascii=False, default=str))


def table(head: list[str], lines: list[list[str]]) -> None:
    """Prints lines in columns, the first two to the left and all others to the right."""
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    for line in [head, *lines]:
        cells = [
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        click.echo("  ".join(cells).rstrip())


def show_rows(
    rows: list[dict[str, Any]],
    as_json: bool,
    head: list[str],
    line_of: Callable[[dict[str, Any]], list[str]],
    nothing: str = "",
) -> None:
    """Prints rows as the service said them, or as a table; `nothing` where there are none."""
    if as_json:
        show_json(rows)
    elif nothing and not rows:
        click.echo(nothing)
    else:
        table(head, [line_of(row) for row in rows])


@contextmanager
def progress(
    label: str, size: int | None = None, file: IO[str] | None = None
) -> Iterator[Callable[[int], None]]:
    """A bar on the error stream that is told how many bytes came; where nobody knows of how many,
    only these. Nothing where no person looks.
    """
    file = file or sys.stderr
    template = "%(label)s  %(info)s" if size is None else "%(label)s  [%(bar)s]  %(info)s"
    done = 0
    endless: Iterator[int] = iter(int, 1)  # has no length, and is never read
    with click.progressbar(
        None if size is not None else endless,
        length=size,
        label=label,
        bar_template=template,
        item_show_func=lambda so_far: f"{(so_far or 0) / 1e6:,.1f} MB",
        hidden=not file.isatty(),
        file=cast(Any, file),
    ) as bar:

        def tell(count: int) -> None:
            nonlocal done
            done += count
            bar.update(count, done)

        yield tell


class Commands(click.Group):
    """Commands that end with a sentence where a file or folder of one's own cannot be written."""

    def invoke(self, context: click.Context) -> Any:
        """What the command returns."""
        try:
            return super().invoke(context)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise  # nobody reads what is printed any more, which click knows
            what = f"{error.filename}: " if error.filename else ""
            end(f"{what}{error.strerror or error}.", REFUSED)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--url", envvar="KBPO_URL", help="Address of the service; else KBPO_URL.")
@click.option("--token", envvar="KBPO_TOKEN", help="Your token; else what `kbpo login` kept.")
@click.version_option(package_name="kbpo-client")
@click.pass_context
def main(context: click.Context, url: str | None, token: str | None) -> None:
    """Submit runs to an on-demand evaluation, watch them, read their scores."""
    context.obj = Service(url, token)


@main.command()
@click.option("--token", prompt="Token (from your account page)", hide_input=True)
@json_option
@service_of
def login(service: Service, token: str, as_json: bool) -> None:
    """Keep a token for this service, once it has been tried."""
    service.token, service.then = token.strip(), "Then run `kbpo login` again with it."
    with service.client() as client:
        client.submissions()
    kept_in = settings.keep(service.url, token.strip())
    if as_json:
        show_json({"url": service.url, "kept_in": kept_in})
    else:
        click.echo(f"Kept in {kept_in}.")


@main.command()
@json_option
@service_of
def tracks(service: Service, as_json: bool) -> None:
    """List the tracks there are."""
    with service.client() as client:
        listed = client.tracks()
    show_rows(
        listed,
        as_json,
        ["track", "name", "status", "target"],
        lambda track: [
            track["slug"],
            track["name"],
            track["status"],
            f"±{100 * float(track['target_half_width']):.0f} %",
        ],
    )


@main.command()
@click.argument("track")
@click.option("--to", type=click.Path(path_type=Path, file_okay=False), help="Else ./TRACK/")
@click.option("--all", "everything", is_flag=True, help="Guidelines, baseline and licence as well.")
@json_option
@service_of
def download(
    service: Service, track: str, to: Path | None, everything: bool, as_json: bool
) -> None:
    """Download what systems are run on: the documents of TRACK and their schema, or its inputs."""
    folder = to or Path(track)
    if everything:
        download_all(service, track, folder, as_json)
        return
    with service.client() as client:
        schema = client.schema(track)
        folder.mkdir(parents=True, exist_ok=True)
        files = {"documents": DOCUMENTS if schema.get("predicates") else INPUTS}
        if "mention_types" in client.track(track)["corpus"]["links"]:
            files["mentions"] = MENTIONS
        for kind, name in files.items():
            with progress(name) as tell:
                client.download(track, folder / name, what=kind, tell=tell)
    if schema.get("predicates"):
        text = json_module.dumps(schema, indent=1, ensure_ascii=False)
        (folder / SCHEMA).write_text(text, encoding="utf-8")
        files["schema"] = SCHEMA
    if as_json:
        show_json({kind: folder / name for kind, name in files.items()})
    elif "schema" in files:
        click.echo(f"The documents and the schema are in {folder}/.")
    else:
        click.echo(f"The inputs are in {folder}/.")


def download_all(service: Service, track: str, folder: Path, as_json: bool) -> None:
    """Downloads all that one needs to take part in a track, in one file, and unpacks it."""
    folder.mkdir(parents=True, exist_ok=True)
    packed = folder / "all.zip"
    with service.client() as client, progress(packed.name) as tell:
        client.download(track, packed, what="all", tell=tell)
    names = []
    try:
        with zipfile.ZipFile(packed) as archive:
            for name in archive.namelist():
                target = folder / Path(name).name  # whatever folder it names
                with archive.open(name) as source, target.open("wb") as file:
                    shutil.copyfileobj(source, file)
                names.append(target.name)
    except zipfile.BadZipFile as bad:
        end(f"What arrived is no whole zip file: {bad}", REFUSED)
    finally:
        packed.unlink(missing_ok=True)
    if as_json:
        show_json({"folder": folder, "files": names})
    else:
        click.echo(f"{', '.join(names)} are in {folder}/: README.md says what they are.")


@main.command()
@click.argument("track")
@click.option("--number", type=int, help="Which one; else the latest.")
@click.option("--to", type=click.Path(path_type=Path), help="Another folder than this one.")
@json_option
@service_of
def release(
    service: Service, track: str, number: int | None, to: Path | None, as_json: bool
) -> None:
    """Download a release of TRACK: all that its board rests on, for `kbpo rescore`."""
    with service.client() as client:
        released = client.releases(track)
        wanted = [
            known_release for known_release in released if number in (None, known_release["number"])
        ]
        if not wanted:
            numbers = (
                ", ".join(str(known_release["number"]) for known_release in released) or "none yet"
            )
            end(f"There is no such release of {track}; there are: {numbers}.", REFUSED)
        folder = to or Path()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / wanted[0]["file"]
        with progress(path.name, wanted[0]["size"]) as tell:
            client.download_release(wanted[0], path, tell=tell)
    if as_json:
        show_json(wanted[0] | {"path": path})
    else:
        click.echo(f"{path}: `kbpo rescore {path}` computes its board.")


@main.command()
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
        end(f"There is no {missing}. `kbpo download {track or 'TRACK'}` fetches it.", 2)
    except (OSError, FormatError, ValueError) as error:
        end(str(error), ERRORS_IN_FILE)
    show_reading(reading, as_json)
    sys.exit(0 if reading.usable else ERRORS_IN_FILE)


def show_reading(reading: Reading, as_json: bool) -> None:
    """Prints the messages of a reader, the first ones in full, and what the file comes to."""
    if as_json:
        summary = asdict(reading) | {"usable": reading.usable}
        summary[summary.pop("items")] = summary.pop("usable_items")
        summary["messages"] = [
            {
                "code": message.code,
                "severity": message.severity,
                "line": message.line,
                "text": message.text,
            }
            for message in reading.messages
        ]
        show_json(summary)
        return
    for message in reading.messages[:SHOWN_MESSAGES]:
        show_message(message.severity, message.line, message.text, message.code)
    if len(reading.messages) > SHOWN_MESSAGES:
        click.echo(f"… and {len(reading.messages) - SHOWN_MESSAGES:,} more; --json has them.")
    counts = (
        (reading.usable_items, reading.items.removesuffix("s")),
        (reading.errors, "error"),
        (reading.warnings, "warning"),
    )
    words = (f"{n:,} {noun}{'' if n == 1 else 's'}" for n, noun in counts)
    verdict = "The service would take it as it is." if reading.usable else "It needs mending first."
    click.echo(f"{', '.join(words)}. {verdict}")


def show_message(severity: str, line: int | None, text: str, code: str) -> None:
    """Prints one message of a reader."""
    where = f"line {line}: " if line else ""
    click.echo(f"{severity:7}  {where}{text} [{code}]")


@main.command()
@click.argument("track")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--name", required=True, help="What the run is called on the board.")
@click.option("--description", default="", help="A sentence on how the system works.")
@click.option("--team", default="", help="Which of your teams, by its slug; else the first.")
@click.option("--paper", default="", help="Address of the paper.")
@click.option("--code", default="", help="Address of the code.")
@click.option("--private", is_flag=True, help="Nowhere for others until `kbpo publish`.")
@click.option("--anonymous", is_flag=True, help="Others see a number in place of names.")
@click.option("--again", is_flag=True, help="Yes, although the same file is there already.")
@json_option
@service_of
def submit(
    service: Service, /, track: str, file: Path, name: str, as_json: bool, **said: Any
) -> None:
    """Upload FILE to TRACK. Nothing is spent before `kbpo confirm`."""
    with service.client() as client, progress(file.name, file.stat().st_size) as tell:
        submission = client.submit(track, file, name, tell=tell, **said)
    if as_json:
        show_json(submission)
        return
    click.echo(f"Submission {submission['id']}: {submission['status_text']}.")
    click.echo(f"`kbpo status {submission['id']} --watch` shows its price once it is planned.")


@main.command()
@click.option("--track", default="", help="Those of one track.")
@click.option("--status", default="", help="Those in one state, as planned or scored.")
@json_option
@service_of
def runs(service: Service, /, as_json: bool, **switches: str) -> None:
    """List the runs of your teams, the latest first, with their numbers."""
    chosen = {name: value for name, value in switches.items() if value}
    with service.client() as client:
        listed = cast(list[dict[str, Any]], client.submissions(**chosen))
    show_rows(
        listed,
        as_json,
        ["run", "track", "team", "number", "state"],
        lambda row: [row["name"], row["track"], row["team"], str(row["id"]), row["status_text"]],
        nothing=f"Your teams have no {'such run' if chosen else 'run yet'}.",
    )


@main.command()
@click.argument("number", type=int)
@click.option("--watch", is_flag=True, help="Wait until it waits for you, or ends.")
@click.option("--long", "in_long", is_flag=True, help="With every figure that it has.")
@json_option
@service_of
def status(service: Service, number: int, watch: bool, in_long: bool, as_json: bool) -> None:
    """Tell where submission NUMBER is: its state, its scores and rank, what to do next.

    With --watch it ends with 0 where the submission waits for you or is scored, and with 1 where it
    was refused, expired or was given up or withdrawn.
    """
    last = ""

    def tell(submission: dict[str, Any]) -> None:
        nonlocal last
        line = how_far(submission)
        if line != last:
            click.echo(line, err=True)
        last = line

    with service.client() as client:
        submission = (
            client.wait(number, tell=tell, tell_trouble=partial(click.echo, err=True))
            if watch
            else client.submission(number)
        )
        board: dict[str, Any] | None = {}
        if submission["scores"] and not as_json:
            try:
                board = client.board(submission["track"])
            except (Refused, Unreachable) as trouble:  # all but the rank is known by now
                click.echo(f"{trouble} The rank is left out.", err=True)
                board = None
    if as_json:
        show_json(submission)
    else:
        click.echo("\n".join(on_one_screen(submission, board)))
    if in_long and not as_json:
        click.echo("\n".join(in_full(submission)))
    if watch and submission["status"] in ENDED:
        sys.exit(REFUSED)


@main.command()
@click.argument("number", type=int)
@json_option
@service_of
def problems(service: Service, number: int, as_json: bool) -> None:
    """List what the reader noticed in the file of submission NUMBER: each thing once, with the
    first line that has it.
    """
    with service.client() as client:
        noticed = cast(list[dict[str, Any]], client.problems(number))
    if as_json:
        show_json(noticed)
        return
    lines_of: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for problem in noticed:
        kind = (problem["severity"], problem["text"], problem["code"])
        lines_of[kind].append(problem["line"])
    for (severity, text, code), lines in list(lines_of.items())[:SHOWN_MESSAGES]:
        more = f" (and {len(lines) - 1:,} more lines)" if len(lines) > 1 else ""
        show_message(severity, lines[0], f"{text}{more}", code)
    if len(lines_of) > SHOWN_MESSAGES:
        click.echo(f"… and {len(lines_of) - SHOWN_MESSAGES:,} more; --json has them.")
    elif not noticed:
        click.echo("Nothing was noticed.")


@main.command()
@click.argument("number", type=int)
@click.option("--to", type=click.Path(path_type=Path), help="Another folder than this one.")
@json_option
@service_of
def fetch(service: Service, number: int, to: Path | None, as_json: bool) -> None:
    """Download the file of submission NUMBER as your team uploaded it."""
    with service.client() as client:
        file = client.submission(number)["file"]
        folder = to or Path()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / Path(file["name"]).name
        if path.exists():
            end(f"{path} is here already. Say another folder with --to.", REFUSED)
        with progress(path.name, file["size"]) as tell:
            client.file(number, path, tell=tell)
    if as_json:
        show_json(file | {"path": path})
    else:
        click.echo(f"{path}: as it was uploaded.")


@main.command()
@click.option("--team", default="", help="Which of your teams, by its slug; else the first.")
@click.option("--read", is_flag=True, help="They are read with this: next time only what is new.")
@json_option
@service_of
def news(service: Service, team: str, read: bool, as_json: bool) -> None:
    """Tell what happened to the runs of your team since its news were last read."""
    with service.client() as client:
        unread = client.news(team)
        if read:
            client.read_news(unread["now"], unread["team"])
    if as_json:
        show_json(unread)
        return
    for piece in unread["news"]:
        click.echo(f"{minute(piece['at'])}  {piece['title']}")
        if piece["text"]:
            click.echo(f"    {piece['text']}")
    if not unread["news"]:
        click.echo("Nothing new.")


@main.command()
@json_option
@service_of
def teams(service: Service, as_json: bool) -> None:
    """List your teams and who belongs to them."""
    with service.client() as client:
        listed = client.teams()
    if as_json:
        show_json(listed)
        return
    for team in listed:
        members = (
            person["name"] + ("" if person["role"] == "member" else f" ({person['role']})")
            for person in team["members"]
        )
        click.echo(f"{team['slug']}  {team['name']}: {', '.join(members)}")


@main.command()
@click.argument("team")
@click.option("--invite", is_flag=True, help="Make a link that makes one person a member.")
@click.option("--look", is_flag=True, help="With --invite: who may look, and change nothing.")
@click.option("--take-back", type=int, help="The invitation of this number works no more.")
@click.option("--owner", help="Make this member an owner.")
@click.option("--member", help="Make this owner or observer a member only.")
@click.option("--observer", help="Let this member look only, and change nothing.")
@click.option("--remove", help="This member belongs to it no more; your own name: you leave.")
@json_option
@service_of
def team(
    service: Service,
    team: str,
    invite: bool,
    look: bool,
    take_back: int | None,
    owner: str | None,
    member: str | None,
    observer: str | None,
    remove: str | None,
    as_json: bool,
) -> None:
    """Show who belongs to TEAM and its open invitations, or change them."""
    if look and not invite:
        raise click.UsageError(
            "--look belongs to --invite; a member looks only by --observer NAME."
        )
    answer: Any = {}
    roles = {"owner": owner, "member": member, "observer": observer}
    new_roles = [(name, role) for role, name in roles.items() if name]
    with service.client() as client:
        if invite:
            answer = client.invite(team, "observer" if look else "member")
        elif take_back is not None:
            client.take_back(team, take_back)
        elif new_roles:
            for name, role in new_roles:
                answer = client.set_role(team, name, role)
        elif remove:
            client.remove_member(team, remove)
        else:
            mine = [own_team for own_team in client.teams() if own_team["slug"] == team]
            if not mine:
                end(f"You belong to no team “{team}”.", REFUSED)
            answer = mine[0] | {"invitations": client.invitations(team)}
    if as_json:
        show_json(answer)
    elif invite:
        condition = ", who may look" if look else ""
        click.echo(
            f"{answer['url']}\nIt works until {answer['expires_at'][:10]}, for one"
            f" person{condition}."
        )
    elif "members" in answer:
        for person in answer["members"]:
            click.echo(f"{person['name']}  {person['role']}")
        for invitation in answer.get("invitations", ()):
            until = f"to {invitation['expires_at'][:10]}"
            click.echo(
                f"invitation {invitation['id']} by {invitation['made_by']}, "
                f"{invitation['role']}, {until}"
            )
    else:
        click.echo("Done.")


@main.command()
@click.option("--mail", help="Be told of these by mail and of no others: scored,refused or none.")
@click.option("--webhook", help="Your webhooks are called for these and no others.")
@json_option
@service_of
def notices(service: Service, mail: str | None, webhook: str | None, as_json: bool) -> None:
    """Show by which ways you are told of what, or choose."""
    chosen_events = {"by_mail": mail, "by_webhook": webhook}
    chosen = {
        way: [event for event in events.split(",") if event not in ("", "none")]
        for way, events in chosen_events.items()
        if events is not None
    }
    with service.client() as client:
        events = client.choose_notices(**chosen) if chosen else client.notices()
    marks = {True: "yes", False: "no"}
    show_rows(
        events,
        as_json,
        ["event", "when", "mail", "webhook"],
        lambda one: [one["event"], one["when"], marks[one["by_mail"]], marks[one["by_webhook"]]],
    )


@main.command()
@click.option("--add", help="An address that is to be called.")
@click.option("--test", type=int, help="Call the webhook of this number for a test.")
@click.option("--remove", type=int, help="The webhook of this number is called no more.")
@json_option
@service_of
def webhooks(
    service: Service, add: str | None, test: int | None, remove: int | None, as_json: bool
) -> None:
    """List your webhooks, addresses that are called when something happens, or change them."""
    answer: Any = {}
    with service.client() as client:
        if add is not None:
            answer = client.add_webhook(add)
        elif test is not None:
            answer = client.test_webhook(test)
        elif remove is not None:
            client.remove_webhook(remove)
        else:
            answer = client.webhooks()
    if as_json:
        show_json(answer)
    elif add is not None:
        click.echo(
            f"{answer['id']}  {answer['url']}\nIts secret, which signs calls: {answer['secret']}"
        )
    elif test is not None:
        click.echo("A test is on its way.")
    elif remove is not None:
        click.echo("It is called no more.")
    else:
        for hook in answer:
            click.echo(f"{hook['id']}  {hook['url']}")


@main.command()
@click.argument("track")
@click.option("--q", default="", help='Words of the text; "in quotes" as they stand, -without.')
@json_option
@service_of
def documents(service: Service, track: str, q: str, as_json: bool) -> None:
    """List the documents of TRACK, or those that have some words."""
    with service.client() as client:
        listed = cast(list[dict[str, Any]], client.documents(track, q))
    if as_json:
        show_json(listed)
        return
    for row in listed:
        begins = " ".join((row["title"] or row["begins"]).split())
        click.echo(f"{row['id']}  {begins[:SHOWN_CHARACTERS]}")
    click.echo(f"{len(listed):,} documents.")


def _chosen(plan: dict[str, Any], half_width: str | None) -> dict[str, Any]:
    """The option of a plan that is confirmed; an empty one where there is none of this width."""
    widths: dict[float, dict[str, Any]] = {
        float(width): option for width, option in plan.get("options", {}).items()
    }
    try:
        return widths.get(float(half_width or plan.get("chosen", "nan")), {})
    except ValueError:
        return {}


@main.command()
@click.argument("number", type=int)
@click.option("--half-width", type=str, help="One of the plan's widths, as 0.03")
@click.option("--good-lines-only", is_flag=True, help="Evaluate a file with errors without them.")
@click.option("--at-most", type=str, help="Dollars; where it costs more by now, nothing is done.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@service_of
def confirm(
    service: Service,
    number: int,
    half_width: str | None,
    good_lines_only: bool,
    at_most: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Confirm the plan of submission NUMBER: its price is reserved."""
    choices: dict[str, Any] = {"good_lines_only": good_lines_only}
    if half_width is not None:
        choices["half_width"] = half_width
    if at_most is not None:
        choices["at_most"] = at_most
    with service.client() as client:
        if not yes:
            submission = client.submission(number)
            click.echo("\n".join(on_one_screen(submission, {}, with_next=False)))
            option = _chosen(submission["plan"], half_width)
            price = f", at most ${option['at_most']}" if option else ""
            click.confirm(f"Begin the judging{price}?", abort=True, err=True)
            if option and at_most is None:
                choices["at_most"] = option["at_most"]
        submission = client.confirm(number, **choices)
    if as_json:
        show_json(submission)
    else:
        click.echo(f"{submission['status_text']}; ${submission['money']['reserved']} reserved.")


@main.command()
@click.argument("number", type=int)
@click.option("--name", help="What the run is called on the board.")
@click.option("--description", help="A sentence on how the system works.")
@click.option("--paper", help="Address of the paper.")
@click.option("--code", help="Address of the code.")
@click.option("--anonymous/--named", default=None, help="Others see a number, or the names.")
@json_option
@service_of
def edit(service: Service, /, number: int, as_json: bool, **said: Any) -> None:
    """Say something else of submission NUMBER; what is not given stays as it is."""
    changes = {name: value for name, value in said.items() if value is not None}
    if not changes:
        options = ", ".join(f"--{name}" for name in said)
        raise click.UsageError(f"What is to change? Say one of {options}.")
    with service.client() as client:
        submission = client.edit(number, **changes)
    if as_json:
        show_json(submission)
    else:
        click.echo(f"{submission['name']}: changed.")


@main.command()
@click.argument("number", type=int)
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@service_of
def publish(service: Service, number: int, yes: bool, as_json: bool) -> None:
    """Show private submission NUMBER to everybody. That stays."""
    with service.client() as client:
        if not yes:
            name = client.submission(number)["name"]
            click.confirm(f"Show {name} to everybody, for good?", abort=True, err=True)
        submission = client.publish(number)
    if as_json:
        show_json(submission)
    else:
        names = ", without your names" if submission["anonymous"] else ""
        click.echo(f"{submission['name']} is public{names}.")


@main.command()
@click.argument("number", type=int)
@click.option("--half-width", required=True, help="The width that you want, as 0.02")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@service_of
def order(service: Service, number: int, half_width: str, yes: bool, as_json: bool) -> None:
    """Order more judgments of scored submission NUMBER, for a narrower interval."""
    with service.client() as client:
        submission = client.submission(number)
        further = submission["further"] or {}
        if not yes:
            option = _chosen(further, half_width)
            price = f", at most ${option['at_most']}" if option else ""
            asked = f"Order more judgments of {submission['name']}, up to ±{half_width}{price}?"
            click.confirm(asked, abort=True, err=True)
        ordered = client.order(number, half_width, further.get("order"))
    if as_json:
        show_json(ordered)
    else:
        click.echo(f"{ordered['status_text']}; ${ordered['money']['reserved']} reserved.")


@main.command()
@click.argument("number", type=int)
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@service_of
def withdraw(service: Service, number: int, yes: bool, as_json: bool) -> None:
    """Take submission NUMBER back. What people have judged is kept and paid."""
    with service.client() as client:
        if not yes:
            name = client.submission(number)["name"]
            click.confirm(f"Withdraw {name}, for good?", abort=True, err=True)
        submission = client.withdraw(number)
    show_where(submission, as_json)


@main.command()
@click.argument("number", type=int)
@json_option
@service_of
def retry(service: Service, number: int, as_json: bool) -> None:
    """Put submission NUMBER, which was given up, back where it was: it is tried again at once."""
    with service.client() as client:
        submission = client.retry(number)
    show_where(submission, as_json)


def show_where(submission: dict[str, Any], as_json: bool) -> None:
    """Prints where a submission is by now, in a line."""
    if as_json:
        show_json(submission)
    else:
        click.echo(f"{submission['name']}: {submission['status_text']}.")


@main.command()
@click.argument("number", type=int)
@click.argument("prediction", type=int)
@click.option("--note", required=True, help="What is wrong, in a sentence.")
@json_option
@service_of
def dispute(service: Service, number: int, prediction: int, note: str, as_json: bool) -> None:
    """Say that PREDICTION of submission NUMBER is judged wrong: an expert is asked, blind.

    `kbpo errors NUMBER --json` has the numbers of predictions.
    """
    with service.client() as client:
        disputed = client.dispute(number, prediction, note)
    if as_json:
        show_json(disputed)
    else:
        click.echo("An expert is asked.")


@main.command()
@click.argument("number", type=int)
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


@main.command()
@click.argument("number", type=int)
@json_option
@service_of
def intervals(service: Service, number: int, as_json: bool) -> None:
    """Show how the interval of submission NUMBER narrowed while it was judged."""
    with service.client() as client:
        shown = cast(list[dict[str, Any]], client.intervals(number))
    show_rows(
        shown,
        as_json,
        ["shown", "80 %", "judgments"],
        lambda row: [minute(row["made_at"]), percent(row), f"{row['n']:,}"],
        nothing="No interval was shown yet.",
    )


@main.command()
@click.argument("number", type=int)
@json_option
@service_of
def history(service: Service, number: int, as_json: bool) -> None:
    """Show what submission NUMBER was ranked by in every evaluation that is kept."""
    with service.client() as client:
        ranked = cast(list[dict[str, Any]], client.history(number))
    show_rows(
        ranked,
        as_json,
        ["evaluation", "made", "80 %"],
        lambda row: [str(row["evaluation"]), minute(row["made_at"]), percent(row)],
        nothing="It stands in no evaluation yet.",
    )


@main.command()
@click.option("--team", default="", help="Which of your teams, by its slug; else the first.")
@click.option("--run", "number", type=int, help="Of the run of this number alone.")
@json_option
@service_of
def ledger(service: Service, team: str, number: int | None, as_json: bool) -> None:
    """List what was set aside for the runs of your team, spent and given back, by day."""
    with service.client() as client:
        rows = cast(list[dict[str, Any]], client.ledger(team, number))
    show_rows(
        rows,
        as_json,
        ["day", "what", "run", "dollars"],
        lambda row: [
            row["on"],
            MOVED.get(row["kind"], row["kind"]),
            str(row["submission"]),
            row["amount"],
        ],
        nothing="No money was moved yet.",
    )


def minute(moment: str) -> str:
    """A moment of the service to the minute, as “2026-05-01 12:30”."""
    return moment[:16].replace("T", " ")


@main.command()
@click.argument("track")
@click.option("--distribution")
@click.option("--criterion")
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
    heads = [column["label"] for column in board["columns"]]
    table(["rank", "system", "number", *heads], lines)


FIGURES = ("worth", "prompts", "bias", "systems", "points", "width", "judgments", "quadrants")
SHORT = 24
"""Characters of a metric's version in a line; the rest stands beneath"""
OF_WORTH = ("pearson", "spearman", "rho", "prmse", "saves")
"""Columns of what a metric is worth that are printed; --json has all of them"""


@main.command()
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
    """What a metric is worth with its 80 % interval, as “1.26 (1.12–1.41)”."""
    if row["worth"] is None or row["low80"] is None:
        return number(row["worth"], 2)
    return f"{row['worth']:.2f} ({row['low80']:.2f}–{row['high80']:.2f})"


def number(value: Any, decimals: int = 3) -> str:
    """A value of a table: a dash where there is none, texts and whole numbers as they are."""
    if value is None:
        return "–"
    return f"{value:.{decimals}f}" if isinstance(value, float) else str(value)


BY_RELATION = "for all of them at once; {left_out} left out, of fewer than {least} judgments"


@main.command()
@click.argument("track")
@click.argument("a", type=int)
@click.argument("b", type=int)
@click.option("--distribution")
@click.option("--criterion")
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
    table(*comparison(compared))
    by_relation = compared.get("by_relation")
    if by_relation and by_relation["differences"]:
        click.echo(f"\nBy relation, {BY_RELATION.format(**by_relation)}:")
        table(*comparison(compared | by_relation))
    for part in compared.get("overlap", ()):
        click.echo(in_part(compared, part))


def in_part(told: dict[str, Any], part: dict[str, Any]) -> str:
    """What both systems predict, or one of them alone, in a line."""
    systems = "both say it"
    if part["of"] != "both":
        systems = f"only {told[part['of']]['team']} {told[part['of']]['name']}"
    judged = f"{percent(part['share'])} right, {part['judged']} judged"
    return f"{systems}: {part['n']:,}, {judged if part['share'] else part['why']}"


def comparison(told: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
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


@main.command()
@click.argument("number", type=int)
@click.option("--verdict", help=VERDICTS)
@click.option("--part", help="Which part is wrong, as `linking`.")
@click.option("--predicate", "relation", help="Of one relation.")
@click.option("--entity", help="Name of the subject or object.")
@click.option("--confidence", help="One of the page's ranges.")
@click.option("--votes", type=click.Choice(["split"]), help="People were divided.")
@click.option("--who", type=click.Choice(["alone"]), help="No other system says so.")
@click.option("--document", help="In one document.")
@click.option("--q", help="Words of the text.")
@click.option("--sort", help="text, sure or unsure; with --missed text or most.")
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
    """Show what people said of the predictions of submission NUMBER, one by one: what they found
    wrong; where they rate, all that they rated, the worst first. The options choose others.
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
    """A prediction in two lines: what it says, and what people said of it."""
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
    return f"{where}  {words}", f"    {'  '.join([*verdicts, prediction['votes']]).rstrip()}"


def show_missed(facts: list[dict[str, Any]], as_json: bool) -> None:
    """Prints what people found true and a run does not predict."""
    if as_json:
        show_json(facts)
        return
    for fact in facts:
        found_by = ", ".join(str(number) for number in fact["found_by"]) or "nobody"
        click.echo(f"{fact['document']}  {fact['claim']}\n    found by {found_by}")
    click.echo(f"{len(facts):,} facts.")


@main.command()
@click.argument("release", type=click.Path(path_type=Path))
@json_option
def rescore(release: Path, as_json: bool) -> None:
    """Compute the board of RELEASE (a directory or its zip file) anew, offline, and compare.

    Ends with 0 if every number agrees to 10 significant digits, with 3 if something differs: it is
    named.
    """
    try:
        rescored = rescoring.rescore(Release(release))
    except BadRelease as bad:
        end(str(bad), ERRORS_IN_FILE)
    if as_json:
        show_json(asdict(rescored) | {"agrees": rescored.agrees})
    else:
        _tell_rescored(rescored)
    if not rescored.agrees:
        sys.exit(ERRORS_IN_FILE)


def _tell_rescored(rescored: rescoring.Rescored) -> None:
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


@main.command("import-scores")
@click.argument("track")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--name", default="", help="Of the judge, if the file has no column `metric`.")
@click.option("--judge-version", default="", help="Which version of it.")
@click.option("--prompt", default="", help="Which prompt it was given.")
@json_option
@service_of
def import_scores(
    service: Service,
    track: str,
    file: Path,
    name: str,
    judge_version: str,
    prompt: str,
    as_json: bool,
) -> None:
    """Bring FILE with scores of a metric or a judge to TRACK: whole, or not at all."""
    judge = {"name": name, "version": judge_version, "prompt": prompt}
    with service.client() as client:
        imported = client.import_scores(track, file, judge)
    if as_json:
        show_json(imported)
        return
    for scorer, taken in imported.items():
        click.echo(f"{scorer}: {taken['sentence']}")


@main.command()
@click.argument("track")
@click.option("--name", required=True, help="What the judge is called.")
@click.option("--judge-version", default="", help="Which version of it: another one is another.")
@click.option("--prompt", default="", help="Which prompt it is given: another one is another.")
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

    def tell(done: int, left: int) -> None:
        click.echo(f"{done:,} judged, {left:,} left", err=True)

    try:
        with service.client() as client, Judge(program, timeout) as running:
            done = judge_all(client, track, named, running, batch=batch, tell=tell)
            while watch is not None:
                time.sleep(watch)
                done += judge_all(client, track, named, running, batch=batch, tell=tell)
    except JudgeFailed as failure:
        end(f"{failure} What it said before is kept.", REFUSED)
    if as_json:
        show_json({"judged": done, "left": 0})
    else:
        click.echo(f"{done:,} judged; nothing is left.")


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what makes the Tab key complete commands: add its output to your shell's settings."""
    from click.shell_completion import get_completion_class

    complete = get_completion_class(shell)
    assert complete is not None
    click.echo(complete(cast(Callable[..., Any], main), {}, "kbpo", "_KBPO_COMPLETE").source())  # type: ignore[arg-type]
