import django.db.models.deletion
from django.db import migrations, models

FIND = """
    UPDATE annotators_tutorialrun SET promise_id = split_part(purpose, ':', 2)::bigint
    WHERE purpose <> '';
    SET CONSTRAINTS ALL IMMEDIATE
"""


class Migration(migrations.Migration):
    dependencies = [("annotators", "0004_write_when_there_is_work")]

    operations = [
        migrations.AddField(
            model_name="tutorialrun",
            name="promise",
            field=models.ForeignKey(
                help_text="The attempt for which money was reserved; none once a bonus pays it",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="annotators.tutorialrun",
            ),
        ),
        migrations.RunSQL(FIND, migrations.RunSQL.noop),
        migrations.RemoveField(model_name="tutorialrun", name="purpose"),
    ]
