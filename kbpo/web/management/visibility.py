"""The options of commands that import judgments: were they published?"""

from __future__ import annotations

from django.core.management.base import CommandParser


def add_visibility(parser: CommandParser) -> None:
    """Add `--public` and `--private`, stored as `public`: True, False, or None for the default."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--public",
        action="store_true",
        default=None,
        help="Everybody may see them, since they were published; later runs are marked"
        " (default for a study)",
    )
    group.add_argument(
        "--private",
        action="store_false",
        dest="public",
        default=None,
        help="Nobody sees them before the track closes (default for a shared track)",
    )
