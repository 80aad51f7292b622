"""Several requests of one address may wait: a second one replaces nothing."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    """The constraint that held one open request an address is gone."""

    dependencies = [("accounts", "0002_note_since_when")]

    operations = [
        migrations.RemoveConstraint(
            model_name="accountrequest", name="one_open_request_an_address"
        ),
    ]
