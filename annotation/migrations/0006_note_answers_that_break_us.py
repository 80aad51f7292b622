from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotation", "0005_find_hits_in_order")]

    operations = [
        migrations.AddField(
            "hit",
            "unread",
            models.CharField(
                blank=True,
                default="",
                help_text="The error by which an answer could not be taken in",
                max_length=60,
            ),
            preserve_default=False,
        ),
    ]
