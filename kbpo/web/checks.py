"""What `manage.py check --deploy` says of settings that are unsafe on a server,
and of what it lacks.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import Tags, Warning, register

from kbpo.releases.parquet import writer


@register(Tags.security, deploy=True)
def check_server(app_configs: Any, **kwargs: Any) -> list[Warning]:
    """Return a warning for each setting that lets strangers in or counts them wrong, and for a
    release without Parquet.
    """
    warnings = []
    if any(host.startswith(("*", ".")) for host in settings.ALLOWED_HOSTS):
        hint = "Name the hosts: with a wildcard the links in our mails lead where a visitor says."
        warnings.append(Warning("ALLOWED_HOSTS has a wildcard.", hint=hint, id="kbpo.W001"))
    if not settings.SITE_URL.startswith("https://"):
        hint = "Passwords, tokens and workers' answers travel to it; put a proxy with TLS in front."
        warnings.append(Warning("SITE_URL begins with http://.", hint=hint, id="kbpo.W002"))
    if not settings.PROXIES:
        hint = "Behind a proxy all visitors then have its address, and share one limit of log-ins."
        warnings.append(Warning("PROXIES is 0.", hint=hint, id="kbpo.W003"))
    if writer() is None:
        hint = "pip install -r requirements-parquet.txt"
        sentence = "pyarrow is not installed: releases will be JSON Lines alone, without Parquet."
        warnings.append(Warning(sentence, hint=hint, id="kbpo.W004"))
    return warnings
