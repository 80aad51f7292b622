from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0004_tell_people"),
    ]

    operations = [
        migrations.AddField(
            model_name="user",
            name="news_read_at",
            field=models.DateTimeField(
                help_text="Up to when this person has read what happened to the team's runs",
                null=True,
            ),
        ),
    ]
