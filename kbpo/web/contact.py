"""What every page knows of whoever runs the site."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest

from kbpo.accounts.mail import goes_out


def contact(request: HttpRequest) -> dict[str, str | bool]:
    """Return the address for the footer, empty where none is set; and whether mails reach
    anybody.
    """
    return {"contact": settings.CONTACT, "sends_mail": goes_out()}
