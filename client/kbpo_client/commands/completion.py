"""The command that makes the Tab key complete commands."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what makes the Tab key complete commands: add its output to your shell's settings."""
    from click.shell_completion import get_completion_class

    complete = get_completion_class(shell)
    assert complete is not None
    main = context.find_root().command
    click.echo(complete(main, {}, "kbpo", "_KBPO_COMPLETE").source())


COMMANDS = (completion,)
