from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def compute_again(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Nothing; where texts are not shown as they are, metrics are computed under that setting."""
    computing = apps.get_model("scores", "Computing").objects.using(schema_editor.connection.alias)
    computing.exclude(submission__track__presentation={}).update(versions=[])


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
