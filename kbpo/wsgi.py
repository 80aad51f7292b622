"""The WSGI application, for gunicorn: `gunicorn kbpo.wsgi`."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbpo.settings")
os.environ["KBPO_ANSWERS_REQUESTS"] = "true"  # waits no longer than a reader would
application = get_wsgi_application()
