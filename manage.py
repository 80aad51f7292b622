#!/usr/bin/env python
"""Django's command line for the service."""

import os
import sys


def main() -> None:
    """Run a management command of Django."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbpo.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError as error:
        raise SystemExit(
            "Django is not installed here. Run `make venv`, then .venv/bin/python manage.py …"
        ) from error
    from django.core.exceptions import ImproperlyConfigured

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        raise SystemExit(f"The service cannot start: {error}") from None


if __name__ == "__main__":
    main()
