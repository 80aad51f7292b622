"""The command line: one command for each action of a researcher, in modules by subject.

A module lists its commands in `COMMANDS`; a new module is added to `MODULES`. All call the service
through `service.Service`, and print through `printing`.
"""

from __future__ import annotations

import errno
from typing import Any

import click

from kbpo_client.commands import files, judge, runs, scores
from kbpo_client.commands.service import REFUSED, STOPPED, Service, end_with_error

MODULES = (files, runs, scores, judge)


class Commands(click.Group):
    """Commands that end with a sentence if a local file or folder cannot be written."""

    def invoke(self, context: click.Context) -> Any:
        """Return the result of the command."""
        try:
            return super().invoke(context)
        except KeyboardInterrupt:
            end_with_error("Stopped.", STOPPED)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise  # nobody reads what is printed any more, which click knows
            what = f"{error.filename}: " if error.filename else ""
            end_with_error(f"{what}{error.strerror or error}.", REFUSED)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--url", envvar="KBPO_URL", help="Address of the service; else KBPO_URL.")
@click.option("--token", envvar="KBPO_TOKEN", help="Your token; else what `kbpo login` kept.")
@click.version_option(package_name="kbpo-client")
@click.pass_context
def main(context: click.Context, url: str | None, token: str | None) -> None:
    """Submit runs to an on-demand evaluation, watch them, read their scores."""
    context.obj = Service(url, token)


for module in MODULES:
    for command in module.COMMANDS:
        main.add_command(command)
