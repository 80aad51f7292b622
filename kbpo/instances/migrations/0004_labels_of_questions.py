from django.db import migrations, models

READ = """
    UPDATE instances_label SET question = substring(origin FROM '^question:([0-9]+)')::bigint,
        again = substring(origin FROM '^question:[0-9]+.*/again-([0-9]+)$')::smallint
    WHERE origin ~ '^question:[0-9]+'
"""


class Migration(migrations.Migration):
    dependencies = [("instances", "0003_scores_have_a_room")]

    operations = [
        migrations.AddField(
            "label",
            "question",
            models.PositiveBigIntegerField(
                null=True,
                help_text="The number of the question that it came from; none: something else",
            ),
        ),
        migrations.AddField(
            "label",
            "again",
            models.PositiveSmallIntegerField(
                null=True,
                help_text=(
                    "How often its question had been aggregated before: it stands in the place of"
                    " all that this had said of the target; none: it was said first"
                ),
            ),
        ),
        migrations.AlterField(
            "label",
            "origin",
            models.CharField(max_length=64, help_text="What it came from, for people; once a target"),
        ),
        migrations.RunSQL(READ, migrations.RunSQL.noop),
        migrations.AddConstraint(
            "label",
            models.CheckConstraint(
                condition=models.Q(again=None) | models.Q(question__isnull=False),
                name="label_again_of_a_question",
            ),
        ),
        migrations.AddIndex(
            "label",
            models.Index(
                fields=["question"],
                condition=models.Q(question__isnull=False),
                name="label_by_question",
            ),
        ),
    ]
