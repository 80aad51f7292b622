import kbpo.clock
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('instances', '0001_baseline'),
    ]

    operations = [
        migrations.AlterField(
            model_name='label',
            name='created_at',
            field=models.DateTimeField(default=kbpo.clock.now, help_text='Visible to teams that predict the target from here on'),
        ),
    ]
