"""Settings of the service: one file, read from the environment. `.env.example` documents every
variable.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from kbpo import embedded, environment

# Before numpy is imported. Sums over some thousand labels are too short for threads: threads of
# its library that wait for one another took more than half of a scoring's processor time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

BASE_DIR = Path(__file__).resolve().parent.parent
VAR = environment.read_path(
    "KBPO_VAR", BASE_DIR / "var", "Where a local machine keeps its servers, uploads and secrets"
)
VERSION = (re.search(r"^## (\S+)", (BASE_DIR / "CHANGELOG.md").read_text(), re.M) or ["", "0"])[1]


def _local_secret() -> str:
    """Return a secret key that is generated once, for machines without a configured one. The file
    is readable by its owner only.
    """
    path = VAR / "secret_key"
    if not path.exists():
        VAR.mkdir(parents=True, exist_ok=True)
        draft = VAR / f"secret_key.{os.getpid()}"
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(50))
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)  # the first process wins; all read its key
        draft.unlink()
    return path.read_text()


# -- Where it runs
# ------------------------------------------------------------------------------
DEBUG = environment.read_flag("DEBUG", False, "Show tracebacks to developers; never on a server")
LOCAL = environment.read_flag(
    "KBPO_LOCAL", True, "A single machine without TLS (make demo); false on a server"
)
SECRET_KEY = environment.read_text(
    "SECRET_KEY",
    "" if os.environ.get("SECRET_KEY") else _local_secret(),
    "Signs sessions and links: 50 random characters or more; empty: made once and"
    " kept under KBPO_VAR",
)
SITE_URL = environment.read_url(
    "SITE_URL", "http://127.0.0.1:8000", "Public address of the site", ["http", "https"]
).rstrip("/")
ALLOWED_HOSTS = environment.read_list(
    "ALLOWED_HOSTS", ["127.0.0.1", "localhost", "testserver"], "Host names that are served"
)
PROXIES = environment.read_integer(
    "PROXIES",
    0,
    "Proxies in front of us that each append to X-Forwarded-For; counted wrong, limits per address"
    " hold back everybody or nobody",
    minimum=0,
    maximum=10,
)
CSRF_TRUSTED_ORIGINS = [SITE_URL] if SITE_URL.startswith("https") else []

CONTACT = environment.read_text(
    "CONTACT", "", "Address of whoever runs the site, in its footer and its mails; may be empty"
)
MAIL_URL = environment.read_text(
    "MAIL_URL",
    "",
    "Mail server, as smtp://user:password@host:587 (STARTTLS) or smtps://…:465; empty: mails are"
    " written to the log instead",
)
MAIL_FROM = environment.read_text("MAIL_FROM", "", "Sender of mails; empty: CONTACT")
DEFAULT_FROM_EMAIL = MAIL_FROM or CONTACT or "kbpo@localhost"
vars().update(environment.mail_settings(MAIL_URL))
WEBHOOKS_TO_PRIVATE = environment.read_flag(
    "WEBHOOKS_TO_PRIVATE",
    False,
    "Webhooks may lead to this machine and its own network; for developers, never on a server",
)
PASSWORD_RESET_TIMEOUT = 24 * 3600

DATABASE_URL = environment.read_text(
    "DATABASE_URL", "", "PostgreSQL; empty: one of our own is started under var/"
)
REDIS_URL = environment.read_text(
    "REDIS_URL", "", "Redis; empty: a single machine with one process for all queues needs none"
)
if not LOCAL and not REDIS_URL:
    raise ImproperlyConfigured(
        "REDIS_URL must be set on a server (KBPO_LOCAL=false): its processes share queues over it."
    )
DATABASES = {"default": environment.database_settings(DATABASE_URL or embedded.database_url())}
DATABASES["default"]["CONN_MAX_AGE"] = 60
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
# Timeouts of the database: short for pages, longer for workers, which retry.
ANSWERS_REQUESTS = bool(os.environ.get("KBPO_ANSWERS_REQUESTS"))  # set by kbpo.wsgi
# Seconds for which a page waits for a lock, and for a statement, before it is a 503; workers wait a
# minute for a lock. A transaction whose process asks nothing for so long is ended.
LOCK_SECONDS = Decimal(2)
STATEMENT_SECONDS = Decimal(30)
IDLE_SECONDS = Decimal(900)
DATABASES["default"]["OPTIONS"] = environment.libpq_timeouts(
    lock=LOCK_SECONDS if ANSWERS_REQUESTS else Decimal(60),
    statement=STATEMENT_SECONDS if ANSWERS_REQUESTS else Decimal(0),
    idle=2 * STATEMENT_SECONDS if ANSWERS_REQUESTS else IDLE_SECONDS,
    options=DATABASES["default"]["OPTIONS"],
)
# Statements that are asked again and again are planned once a session (kbpo/prepared.py).
DATABASES["default"]["OPTIONS"]["options"] += " -c plan_cache_mode=force_generic_plan"

# -- Django
# ------------------------------------------------------------------------------
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.contrib.humanize",
    "rest_framework",
    "drf_spectacular",
    "kbpo.clock",
    "kbpo.accounts",
    "kbpo.corpus",
    "kbpo.instances",
    "kbpo.tracks",
    "kbpo.tracks.kbp",
    "kbpo.tracks.texts",
    "kbpo.money",
    "kbpo.submissions",
    "kbpo.scores",
    "kbpo.sampling",
    "kbpo.evaluation",
    "kbpo.releases",
    "kbpo.web",
    "annotation",
    "annotation.workers",
]
MIDDLEWARE = [
    "kbpo.web.http.PolicyMiddleware",  # above all that answers by itself: files, redirects
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "kbpo.web.bodies.PlacesMiddleware",  # above all that may drop an answer that holds a place
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "kbpo.web.bodies.BodyLimitMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "kbpo.web.api.requests.UnchangedMiddleware",
    "kbpo.web.errors.ErrorMiddleware",
]
ROOT_URLCONF = "kbpo.urls"
WSGI_APPLICATION = "kbpo.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        # Each interface of the crowd is one directory, with the template of its page.
        "DIRS": [BASE_DIR / "templates", BASE_DIR / "annotation"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.debug",
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "kbpo.web.http.add_contact",
            ],
        },
    }
]
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["kbpo.accounts.backend.PlannedBackend"]
PASSWORD_HASHERS = ["kbpo.web.expensive.LimitedHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "account"
LOGOUT_REDIRECT_URL = "home"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "kbpo.web.apps.InterfaceFinder",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": (
            "django.contrib.staticfiles.storage.StaticFilesStorage"
            if LOCAL
            else "whitenoise.storage.CompressedManifestStaticFilesStorage"
        ),
        # Uploads are private to the account of the service; static files are built by another one.
        "OPTIONS": {"file_permissions_mode": 0o644},
    },
}
WHITENOISE_USE_FINDERS = LOCAL
MEDIA_ROOT = environment.read_path("MEDIA_ROOT", VAR / "media", "Where uploads are kept")
FILE_UPLOAD_PERMISSIONS = 0o600
# Predictions as arrays: a cache, rebuilt if it is lost (kbpo/corpus/cache.py).
ARRAYS_ROOT: Path | None = VAR / "arrays"
DATA_UPLOAD_MAX_MEMORY_SIZE = 5 * 1024 * 1024
CACHES: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": "kbpo.web.kept.ForgivingCache",
        "LOCATION": REDIS_URL,
        "OPTIONS": {"socket_timeout": 1, "socket_connect_timeout": 1},  # a paused one is away, too
    }
    if REDIS_URL
    else {
        "BACKEND": "django.core.cache.backends.filebased.FileBasedCache",
        "LOCATION": str(VAR / "cache"),
        "OPTIONS": {"MAX_ENTRIES": 1000},
    }
}

# -- Security (check --deploy is clean with LOCAL=false)
# ------------------------------------------------------------
SESSION_ENGINE = "kbpo.web.sessions"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not LOCAL
CSRF_FAILURE_VIEW = "kbpo.web.judging.views.handle_stale_form"
SECURE_SSL_REDIRECT = not LOCAL
SECURE_HSTS_SECONDS = 0 if LOCAL else 31_536_000
SECURE_HSTS_INCLUDE_SUBDOMAINS = not LOCAL
SILENCED_SYSTEM_CHECKS = ["security.W021"]  # a domain's owner offers it for preloading, not we
# Without a proxy in front anybody could write this header.
SECURE_PROXY_SSL_HEADER = None if LOCAL else ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# -- Celery: the clock; the database is the queue
# -------------------------------------------------------------------
# Without Redis there is no broker: kbpo/single_worker.py takes the place of Celery.
CELERY_BROKER_URL = environment.broker_url(REDIS_URL) if REDIS_URL else "memory://"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# Connections are kept as pages keep them (kbpo/celery.py), not opened for every tick: Celery
# counts up to this many tasks before it closes one.
FOREVER = 10**9
CELERY_DB_REUSE_MAX = FOREVER
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_timeout": 5, "socket_connect_timeout": 2}
CELERY_TASK_DEFAULT_QUEUE = "people"
CELERY_BEAT_SCHEDULE_FILENAME = str(VAR / "beat-schedule")
TICK_SECONDS = environment.read_decimal(
    "TICK_SECONDS", Decimal("5"), "Seconds between two rounds of the clock", minimum=Decimal("0.2")
)
# Writers trigger the next step over Redis; without Redis it waits for the clock.
NUDGES = bool(REDIS_URL)
DEBOUNCE_SECONDS = environment.read_decimal(
    "DEBOUNCE_SECONDS",
    Decimal("5"),
    "Scores are made again at most once in this many seconds",
    minimum=Decimal("0"),
)

FEWEST_PREDICTIONS = environment.read_integer(
    "FEWEST_PREDICTIONS",
    100,
    "Predictions in the test part that a run on a shared track needs",
    minimum=1,
)

# Seconds for which a page is cached; 0: not at all
PAGES_KEPT_SECONDS = 60

# -- The API
# ------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["kbpo.web.api.requests.TokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "EXCEPTION_HANDLER": "kbpo.web.api.view.handle_exception",
    "DEFAULT_THROTTLE_CLASSES": ["kbpo.web.api.requests.RateLimit"],
}
# Requests to the API that a person may make in a minute
API_RATE = 600
# Requests to the API that an address may make in a minute without a token
API_RATE_OF_STRANGERS = 300
SPECTACULAR_SETTINGS = {
    "TITLE": "KBP Online",
    "VERSION": VERSION,
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,  # an uploaded file is bytes, not a URL
    "ENUM_NAME_OVERRIDES": {"NoticeEnum": "kbpo.accounts.models.EVENTS"},
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "kbpo.web.api.answers.add_common_responses",
    ],
}

# -- Limits of uploads (formats.opening has the rest)
# ----------------------------------------------------------------
UPLOAD_LIMIT_MB = environment.read_integer(
    "UPLOAD_LIMIT_MB", 512, "Largest upload, in megabytes", minimum=1
)
# Largest upload when unpacked, in megabytes
UNPACKED_LIMIT_MB = 4096
# Relations that an upload may have
RELATION_LIMIT = 2_000_000

# Unconfirmed uploads that a team may have
TEAM_DRAFTS = 30
# Megabytes that a team may upload in a day
TEAM_DAY_MB = 4096
# Files that a team may upload in a day
TEAM_DAY_UPLOADS = 200
# A team that has uploaded so many predictions in a day waits for the next: predictions are
# kept, since others may share them
TEAM_DAY_ITEMS = 20_000_000

# -- The pool of our own annotators
# ------------------------------------------------------------------------------
# Minutes that a question stays with an annotator
LEASE_MINUTES = 10
WORKER_KEY = environment.read_text(
    "WORKER_KEY", SECRET_KEY, "Keys the hash of workers' ids; never change it"
)

# -- Mechanical Turk, or what speaks its protocol
# -------------------------------------------------------------------
MTURK_ENDPOINT_URL = environment.read_url(
    "MTURK_ENDPOINT_URL",
    "",
    "Requester endpoint of a marketplace; empty: there is none",
    ["http", "https"],
)
REAL_MONEY = environment.read_flag(
    "REAL_MONEY", False, "Real money may move; must agree with MTURK_ENDPOINT_URL"
)
MTURK_ACCESS_KEY_ID = environment.read_text(
    "MTURK_ACCESS_KEY_ID", "", "Key of the requester; empty: as boto3 finds it"
)
MTURK_SECRET_ACCESS_KEY = environment.read_text(
    "MTURK_SECRET_ACCESS_KEY", "", "The secret to that key"
)
# Names our qualifications on a marketplace
MTURK_NAME = "KBP Online"
MTURK_WORKER_SITES = environment.read_list(
    "MTURK_WORKER_SITES",
    ["https://www.mturk.com", "https://worker.mturk.com", "https://workersandbox.mturk.com"],
    "Sites that may show task pages in their frame, and that answers are sent to",
)
MTURK_NOTIFY_TOPIC = environment.read_text(
    "MTURK_NOTIFY_TOPIC",
    "",
    "SNS topic (its ARN) that the marketplace tells of answers; empty: we only look",
)
MTURK_TIMEOUT = environment.read_decimal(
    "MTURK_TIMEOUT",
    Decimal("20"),
    "Seconds to wait for an answer of the endpoint",
    minimum=Decimal("0.1"),
)
MTURK_POLL_SECONDS = environment.read_decimal(
    "MTURK_POLL_SECONDS",
    Decimal("30"),
    "Seconds between two looks at the marketplace",
    minimum=Decimal("0"),
)
MTURK_QUESTIONS_PER_HIT = environment.read_integer(
    "MTURK_QUESTIONS_PER_HIT",
    5,
    "Most questions about one document in a HIT",
    minimum=1,
    maximum=50,
)
# Hours that a HIT is offered
MTURK_HIT_HOURS = 72
# Days after which the marketplace pays by itself
MTURK_AUTO_APPROVAL_DAYS = 7
MTURK_REQUIRE_TUTORIAL = environment.read_flag(
    "MTURK_REQUIRE_TUTORIAL", False, "Only who passed the tutorial or was admitted may accept a HIT"
)
MTURK_TUTORIAL = environment.read_flag(
    "MTURK_TUTORIAL", True, "Workers do the tutorial in the frame before they judge"
)
MTURK_LEAST_APPROVED_PERCENT = environment.read_integer(
    "MTURK_LEAST_APPROVED_PERCENT",
    0,
    "Least share of approved work of a worker",
    minimum=0,
    maximum=100,
)
MTURK_LEAST_APPROVED_HITS = environment.read_integer(
    "MTURK_LEAST_APPROVED_HITS", 0, "Least number of approved HITs of a worker", minimum=0
)
MTURK_COUNTRIES = environment.read_list(
    "MTURK_COUNTRIES", [], "Countries that workers live in, e.g. US,GB; empty: any"
)

METRICS_TOKEN = environment.read_text(
    "METRICS_TOKEN", "", "Whoever sends it as a bearer token reads /metrics; empty: nobody does"
)
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name} {message}", "style": "{"}},
    "filters": {
        "one_line": {"()": "kbpo.web.errors.OneLine"},
        "secret_links": {"()": "kbpo.accounts.secret_links.MaskSecretLinks"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": "line",
            "filters": ["one_line", "secret_links"],
        }
    },
    "loggers": {"django.request": {"filters": ["one_line"]}},
    "root": {
        "handlers": ["console"],
        "level": environment.read_choice(
            "LOG_LEVEL", "WARNING", "How much is logged", ["DEBUG", "INFO", "WARNING", "ERROR"]
        ),
    },
}
