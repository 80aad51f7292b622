from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

SHOW = """
    UPDATE instances_label l SET public_at = now()
    FROM annotation_question q JOIN tracks_track t ON t.id = q.track_id
    WHERE t.status = 'closed' AND l.public_at IS NULL
      AND CASE WHEN l.origin ~ '^question:[0-9]+(/|$)'
          THEN split_part(split_part(l.origin, ':', 2), '/', 1)::bigint END = q.id
"""
"""What was judged for a track after it had closed: everybody can see it from now on."""


def show(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Nothing; judgments that stayed hidden are shown."""
    schema_editor.execute(SHOW)


class Migration(migrations.Migration):
    dependencies = [("annotation", "0016_queue_divided_by_the_clock"), ("instances", "0002_check_each_instance_once")]

    operations = [migrations.RunPython(show, migrations.RunPython.noop, elidable=True)]
