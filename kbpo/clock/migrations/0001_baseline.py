from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [
        ("clock", "0001_heartbeats"),
    ]
    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Heartbeat',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField()),
            ],
            options={
                'db_table_comment': 'When the clock of the service ticked last: one row',
            },
        ),
        migrations.CreateModel(
            name='Pause',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('begin', models.DateTimeField()),
                ('end', models.DateTimeField(db_index=True)),
            ],
            options={
                'db_table_comment': 'Times that no deadline counts: the service was off, or the time jumped',
            },
        ),
    ]
