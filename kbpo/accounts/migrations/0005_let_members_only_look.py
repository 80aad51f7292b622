from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("accounts", "0004_forget_mails_with_what_they_answer"),
    ]

    operations = [
        migrations.AddField(
            model_name="membership",
            name="may_only_look",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Sees what the team sees; uploads, spends, changes and invites nothing",
            ),
        ),
        migrations.AlterField(
            model_name="invitation",
            name="role",
            field=models.CharField(
                choices=[
                    ("annotator", "annotator"),
                    ("researcher", "researcher"),
                    ("observer", "observer"),
                ],
                max_length=16,
            ),
        ),
    ]
