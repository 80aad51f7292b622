from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('evaluation', '0002_flips'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='look',
            name='look_once_a_number_of_judgments',
        ),
        migrations.AddField(
            model_name='look',
            name='order',
            field=models.PositiveSmallIntegerField(default=0, help_text='The order of judgments that was judged then'),
        ),
        migrations.AddField(
            model_name='look',
            name='variance',
            field=models.FloatField(default=1.0, help_text='What the intervals rest on'),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name='look',
            name='quantile80',
            field=models.FloatField(default=6.0, help_text='In the place of the normal quantile'),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name='look',
            name='quantile95',
            field=models.FloatField(default=6.0),
            preserve_default=False,
        ),
        migrations.AddConstraint(
            model_name='look',
            constraint=models.UniqueConstraint(fields=('submission', 'order', 'n'), name='look_once_a_number_of_judgments'),
        ),
    ]
