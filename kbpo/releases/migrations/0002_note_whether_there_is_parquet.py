from __future__ import annotations

from typing import Any
from zipfile import BadZipFile, ZipFile

from django.db import migrations, models


def note(apps: Any, schema_editor: Any) -> None:
    """Nothing; of each release that was made it is noted what its file holds."""
    for row in apps.get_model("releases", "Release").objects.exclude(file=""):
        try:
            with row.file.open("rb") as file, ZipFile(file) as packed:
                row.has_parquet = any(name.endswith(".parquet") for name in packed.namelist())
        except (OSError, BadZipFile):
            continue
        row.save(update_fields=["has_parquet"])


class Migration(migrations.Migration):
    dependencies = [("releases", "0001_baseline")]

    operations = [
        migrations.AddField(
            model_name="release",
            name="has_parquet",
            field=models.BooleanField(
                default=False, help_text="Its tables are in its file as Parquet, too"
            ),
        ),
        migrations.RunPython(note, migrations.RunPython.noop),
    ]
