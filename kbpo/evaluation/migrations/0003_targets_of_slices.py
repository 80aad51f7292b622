from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('evaluation', '0002_printed'),
    ]

    operations = [
        migrations.AlterField(
            model_name='estimate',
            name='n_predictions',
            field=models.IntegerField(help_text="Predictions of the submission that lie in the slice, a target's counted once", null=True),
        ),
    ]
