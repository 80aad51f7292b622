"""Who chose how to be told of scores is told of releases in the same way: those came as such."""

from __future__ import annotations

from django.db import migrations

COPY = """
    INSERT INTO accounts_preference (user_id, event, by_mail, by_call)
    SELECT user_id, 'release', by_mail, by_call FROM accounts_preference WHERE event = 'scored'
    ON CONFLICT (user_id, event) DO NOTHING
"""


class Migration(migrations.Migration):
    """What somebody chose of releases since stays."""

    dependencies = [("accounts", "0004_tell_of_releases_by_an_event")]

    operations = [migrations.RunSQL(COPY, migrations.RunSQL.noop)]
