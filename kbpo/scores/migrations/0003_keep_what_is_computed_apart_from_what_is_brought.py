from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scores", "0002_keep_metrics_apart_by_how_texts_are_shown")]

    operations = [
        migrations.RemoveConstraint(model_name="scorer", name="scorer_once"),
        migrations.AddConstraint(
            model_name="scorer",
            constraint=models.UniqueConstraint(
                fields=["corpus", "name", "version", "prompt", "presentation", "source"],
                name="scorer_once",
            ),
        ),
    ]
