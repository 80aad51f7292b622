from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('sampling', '0002_ask_experts_in_one_queue'),
    ]

    operations = [
        migrations.RenameField('leaktest', 'stated', 'predicted'),
        migrations.AlterField(
            model_name='leaktest',
            name='expected',
            field=models.FloatField(help_text='How many it would predict on average by chance'),
        ),
        migrations.AlterField(
            model_name='leaktest',
            name='of_unlikely',
            field=models.BooleanField(default=False, help_text='These three count only what few other runs predict'),
        ),
        migrations.AlterField(
            model_name='leaktest',
            name='predicted',
            field=models.IntegerField(help_text='Those of them that the run predicts'),
        ),
    ]
