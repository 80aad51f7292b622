"""What a release will hold of a private run is told as an event of its own."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """People may choose by which ways they are told of it."""

    dependencies = [("accounts", "0003_keep_every_request")]

    operations = [
        migrations.AlterField(
            model_name="preference",
            name="event",
            field=models.CharField(
                choices=[
                    ("scored", "A run of your team is scored"),
                    ("refused", "A file of your team cannot be used, or is given up"),
                    (
                        "expired",
                        "A draft of your team is put away, because nobody confirmed it",
                    ),
                    (
                        "release",
                        "A track is closed, and its release will hold a private run of your team",
                    ),
                    ("dispute", "A judgment that you doubted was looked at by an expert"),
                    ("decision", "Something was decided about your own answers or pay"),
                ],
                max_length=16,
            ),
        ),
    ]
