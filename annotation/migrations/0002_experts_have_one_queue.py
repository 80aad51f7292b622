from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0001_baseline'),
        ('sampling', '0002_ask_experts_in_one_queue'),
    ]

    operations = [
        migrations.DeleteModel(
            name='Adjudication',
        ),
    ]
