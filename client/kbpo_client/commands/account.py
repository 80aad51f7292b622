"""Commands of one's own account: the token, teams, their news, notices and webhooks."""

from __future__ import annotations

import sys
from typing import Any

import click

from kbpo_client import settings
from kbpo_client.client import Client
from kbpo_client.commands.printing import minute, show_json, show_rows
from kbpo_client.commands.service import REFUSED, Service, end, json_option, service_of

EVENTS = "some of scored,refused,expired,dispute,decision, with commas between them, or none"


@click.command()
@click.option("--token", help="Else it is asked for, or read from what is piped in.")
@json_option
@service_of
def login(service: Service, token: str | None, as_json: bool) -> None:
    """Keep a token for this service, once it has been tried."""
    token = token or _ask_for_token()
    service.token, service.then = token.strip(), "Then run `kbpo login` again with it."
    with service.client() as client:
        client.submissions()
    kept_in = settings.keep(service.url, token.strip())
    if as_json:
        show_json({"url": service.url, "kept_in": kept_in})
    else:
        click.echo(f"Kept in {kept_in}.")


def _ask_for_token() -> str:
    """Return the token that a person types unseen, or the first line of what is piped in."""
    if sys.stdin.isatty():
        return str(click.prompt("Token (from your account page)", hide_input=True))
    token = sys.stdin.readline().strip()
    if not token:
        raise click.UsageError("Which token? Say --token, or pipe it in.")
    return token


@click.command()
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
        members = []
        for person in team["members"]:
            role = "" if person["role"] == "member" else f" ({person['role']})"
            members.append(f"{person['name']}{role}")
        click.echo(f"{team['slug']}  {team['name']}: {', '.join(members)}")


@click.command()
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
    new_roles = {role: name for role, name in roles.items() if name}
    with service.client() as client:
        if invite:
            answer = client.invite(team, "observer" if look else "member")
        elif take_back is not None:
            client.take_back(team, take_back)
        elif new_roles:
            for role, name in new_roles.items():
                answer = client.set_role(team, name, role)
        elif remove:
            client.remove_member(team, remove)
        else:
            answer = own_team(client, team) | {"invitations": client.invitations(team)}
    if as_json:
        show_json(answer)
    elif invite:
        until, condition = answer["expires_at"][:10], ", who may look" if look else ""
        click.echo(f"{answer['url']}\nIt works until {until}, for one person{condition}.")
    elif "members" in answer:
        show_team(answer)
    else:
        click.echo("Done.")


def own_team(client: Client, slug: str) -> dict[str, Any]:
    """Return the team of one's own that is called so; ends the command where there is none."""
    own = {team["slug"]: team for team in client.teams()}
    if slug not in own:
        end(f"You belong to no team “{slug}”.", REFUSED)
    return dict(own[slug])


def show_team(team: dict[str, Any]) -> None:
    """Prints who belongs to a team, and its open invitations, a line each."""
    for person in team["members"]:
        click.echo(f"{person['name']}  {person['role']}")
    for invitation in team.get("invitations", ()):
        click.echo(
            f"invitation {invitation['id']} by {invitation['made_by']}, "
            f"{invitation['role']}, to {invitation['expires_at'][:10]}"
        )


@click.command()
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


@click.command()
@click.option("--mail", help=f"Be told of these by mail and of no others: {EVENTS}.")
@click.option("--webhook", help=f"Your webhooks are called for these and no others: {EVENTS}.")
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


@click.command()
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


COMMANDS = (login, teams, team, news, notices, webhooks)
