import django.db.models.deletion
import kbpo.clock
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [
        ("releases", "0001_initial"),
    ]
    initial = True

    dependencies = [
        ('accounts', '__first__'),
        ('tracks', '0001_baseline'),
    ]

    operations = [
        migrations.CreateModel(
            name='Release',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(db_index=True, max_length=16)),
                ('status_since', models.DateTimeField(default=kbpo.clock.now)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('next_try_at', models.DateTimeField(default=kbpo.clock.now)),
                ('reason', models.TextField(blank=True, default='', help_text='Why it waits or was given up, for its owner')),
                ('number', models.PositiveIntegerField(help_text='Counts from 1 within the track')),
                ('ordered_at', models.DateTimeField(default=kbpo.clock.now)),
                ('made_at', models.DateTimeField(null=True)),
                ('file', models.FileField(blank=True, max_length=300, upload_to='releases/')),
                ('size', models.BigIntegerField(default=0)),
                ('digest', models.CharField(blank=True, help_text='SHA-256 of the file', max_length=64)),
                ('rows', models.JSONField(default=dict, help_text='Table -> how many rows it has')),
                ('ordered_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='releases', to='tracks.track')),
            ],
            options={
                'db_table_comment': 'Releases of tracks: all that a board rests on, as a file',
                'constraints': [models.UniqueConstraint(fields=('track', 'number'), name='release_number_once'), models.UniqueConstraint(condition=models.Q(('status', 'ordered')), fields=('track',), name='one_release_at_a_time')],
            },
        ),
    ]
