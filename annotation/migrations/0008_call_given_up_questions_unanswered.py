from django.db import migrations

RENAME = "UPDATE annotation_question SET status = 'unanswered' WHERE status = 'given_up'"
BACK = "UPDATE annotation_question SET status = 'given_up' WHERE status = 'unanswered'"


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0007_call_sweeps_follow_ups'),
    ]

    operations = [
        migrations.RunSQL(RENAME, BACK),
    ]
