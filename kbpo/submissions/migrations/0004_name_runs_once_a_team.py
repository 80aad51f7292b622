import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

DISCARD = models.Q(status__in=["refused", "expired"]) | models.Q(
    status="withdrawn", confirmed_at__isnull=True
)


def number_duplicates(apps, schema_editor):
    """The first run of a name keeps it; later ones get a number after it, and the log says so."""
    Submission = apps.get_model("submissions", "Submission")
    Audit = apps.get_model("accounts", "Audit")
    taken = set()
    later = []
    for row in Submission.objects.exclude(DISCARD).order_by("pk").only("team_id", "name"):
        key = row.team_id, row.name.lower()
        later += [row] if key in taken else []
        taken.add(key)
    for row in later:
        before, number = row.name, 1
        while (row.team_id, row.name.lower()) in taken:
            number += 1
            row.name = f"{before[: 79 - len(str(number))]} {number}"
        taken.add((row.team_id, row.name.lower()))
        row.save(update_fields=["name"])
        Audit.objects.create(
            what="rename",
            about=f"submission:{row.pk}",
            before=before,
            after=row.name,
            why="Names are unique in a team now, and an earlier run has this one.",
        )


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_news_read"),
        ("submissions", "0003_roles"),
        ("tracks", "0004_ends_when_ranked"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="submission",
            name="deleted_at",
            field=models.DateTimeField(
                help_text="Of a discard: when its team deleted what was left of it", null=True
            ),
        ),
        migrations.RunPython(number_duplicates, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name="submission",
            constraint=models.UniqueConstraint(
                models.F("team"),
                django.db.models.functions.text.Lower("name"),
                condition=~DISCARD,
                name="name_once_a_team",
            ),
        ),
    ]
