"""Begins the command line; whoever stops it meanwhile is told so in a line."""

from __future__ import annotations

import sys


def run() -> None:
    """Runs the command that was said."""
    try:
        from kbpo_client.commands import main

        main()
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        sys.exit(130)
