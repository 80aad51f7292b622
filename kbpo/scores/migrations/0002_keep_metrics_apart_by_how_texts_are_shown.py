from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def compute_again(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Nothing; in a corpus of which some track does not show texts as they are, nobody knows how a
    text was shown whose metrics are there: all of them are computed anew, each under its setting.
    """
    database = schema_editor.connection.alias
    presented = apps.get_model("tracks", "Track").objects.using(database).exclude(presentation={})
    corpora = list(presented.values_list("corpus_id", flat=True))
    scores = apps.get_model("scores", "Score").objects.using(database)
    scores.filter(scorer__source="computed", scorer__corpus__in=corpora).delete()
    computing = apps.get_model("scores", "Computing").objects.using(database)
    computing.filter(submission__track__corpus__in=corpora).update(versions=[])


class Migration(migrations.Migration):
    dependencies = [
        ("scores", "0001_baseline"),
        ("tracks", "0002_record_presentations"),
    ]

    operations = [
        migrations.AddField(
            model_name="scorer",
            name="presentation",
            field=models.CharField(
                blank=True,
                default="",
                max_length=100,
                help_text="How texts are shown to what is computed here; empty: as they are",
            ),
            preserve_default=False,
        ),
        migrations.RemoveConstraint(model_name="scorer", name="scorer_once"),
        migrations.AddConstraint(
            model_name="scorer",
            constraint=models.UniqueConstraint(
                fields=["corpus", "name", "version", "prompt", "presentation"], name="scorer_once"
            ),
        ),
        migrations.RunPython(compute_again, migrations.RunPython.noop, elidable=True),
    ]
