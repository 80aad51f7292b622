"""The WSGI application, for gunicorn: `gunicorn kbpo.wsgi`."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbpo.settings")
application = get_wsgi_application()
