from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("submissions", "0002_predictions_of_any_kind"),
    ]

    operations = [
        migrations.AddField(
            model_name="submission",
            name="role",
            field=models.CharField(
                choices=[
                    ("system", "a system"),
                    ("baseline", "a baseline: ranked, and marked as one"),
                    ("reference", "the reference: written by people, has no rank"),
                ],
                default="system",
                max_length=9,
            ),
        ),
    ]
