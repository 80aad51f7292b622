"""Starts the command line; an interrupt ends it with one line."""

from __future__ import annotations

import sys


def run_command_line() -> None:
    """Run the command line of the client."""
    try:
        from kbpo_client.commands import main

        main()
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        sys.exit(130)
