from django.db import migrations, models

FLAGS = {
    "is_private": "Nowhere for others until its team publishes it",
    "is_anonymous": "Others see neither its team, its name nor its description",
}


class Migration(migrations.Migration):
    dependencies = [
        ("submissions", "0004_name_runs_once_a_team"),
    ]

    operations = [
        *(
            migrations.AddField(
                model_name="submission",
                name=name,
                field=models.BooleanField(default=False, help_text=words),
            )
            for name, words in FLAGS.items()
        ),
        *(
            migrations.AddField(
                model_name="submission",
                name=name,
                field=models.URLField(blank=True, default="", max_length=300),
                preserve_default=False,
            )
            for name in ("paper_url", "code_url")
        ),
    ]
