# The image of every process of the service: web, worker, beat. docker-compose.yml says how they run together.
FROM python:3.11-slim@sha256:db3ff2e1800a8581e2c48a27c3995339d47bdf046da21c7627accd3d51053a93

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /srv/kbpo

# The database servers for a machine that has none stay out: here they run in containers of their own.
COPY requirements.lock .
RUN pip install --require-hashes --no-deps -r requirements.lock

# docker compose build --build-arg SIMILARITY=yes: the metric of texts whose model comes in a package, too.
ARG SIMILARITY=
COPY requirements-similarity.lock .
RUN if [ -n "$SIMILARITY" ]; then pip install --require-hashes --no-deps -r requirements-similarity.lock; fi

RUN useradd --system --uid 10001 --home-dir /var/lib/kbpo --shell /usr/sbin/nologin kbpo \
    && install -d -o kbpo -g kbpo -m 0700 /var/lib/kbpo
COPY . .

# Reading the settings takes addresses and a key; collectstatic connects to nothing and signs nothing.
RUN KBPO_LOCAL=false SECRET_KEY=unused DATABASE_URL=postgres:///unused REDIS_URL=redis://unused \
    python manage.py collectstatic --noinput

USER kbpo
ENV KBPO_LOCAL=false KBPO_VAR=/var/lib/kbpo
VOLUME /var/lib/kbpo
EXPOSE 8000
# The log of requests has paths and no queries: a marketplace puts its workers' ids and our proofs there.
CMD ["gunicorn", "kbpo.wsgi", "--bind=0.0.0.0:8000", "--config=python:kbpo.serving", "--workers=3", "--threads=4", "--worker-tmp-dir=/dev/shm", "--timeout=120", "--access-logfile=-", \
     "--access-logformat=%(h)s %(t)s \"%(m)s %(U)s %(H)s\" %(s)s %(b)s %(M)s"]
