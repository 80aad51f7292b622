from django.db import migrations, models
from django.db.models import Q


def follow_the_reasons(apps, schema_editor):
    responses = apps.get_model("annotation", "Response").objects
    responses.exclude(excluded_reason="").update(counts=False)


class Migration(migrations.Migration):
    dependencies = [("annotation", "0003_find_what_a_worker_has_in_hand")]

    operations = [
        migrations.AddField(
            "response",
            "counts",
            models.BooleanField(
                db_default=True, default=True, help_text="Whether labels and measures are made of it"
            ),
        ),
        migrations.AlterField(
            "response",
            "excluded_reason",
            models.TextField(blank=True, help_text="Why it does not count, for people to read"),
        ),
        migrations.RunPython(follow_the_reasons, migrations.RunPython.noop, elidable=True),
        migrations.AddConstraint(
            "response",
            models.CheckConstraint(
                condition=Q(counts=True, excluded_reason="")
                | Q(counts=False) & ~Q(excluded_reason=""),
                name="response_says_why_it_does_not_count",
            ),
        ),
    ]
