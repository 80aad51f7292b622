"""The WSGI application, for gunicorn: `gunicorn kbpo.wsgi`."""

import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbpo.settings")
os.environ["KBPO_ANSWERS_REQUESTS"] = "true"  # waits no longer than a reader would
application = get_wsgi_application()
_pages = get_resolver().url_patterns  # loads all that answers requests
# What is loaded by now is never garbage. Looking through it again and again made one request in
# forty wait a tenth of a second.
gc.collect()
gc.freeze()
