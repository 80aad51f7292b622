import django.db.models.deletion
import kbpo.clock
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [
        ("scores", "0001_initial"),
        ("scores", "0002_keep_metrics_apart_by_how_texts_are_shown"),
        ("scores", "0003_keep_what_is_computed_apart_from_what_is_brought"),
    ]
    initial = True

    dependencies = [
        ('accounts', '__first__'),
        ('corpus', '0001_baseline'),
        ('instances', '0001_baseline'),
        ('submissions', '0001_baseline'),
    ]

    operations = [
        migrations.CreateModel(
            name='Computing',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(db_index=True, max_length=16)),
                ('status_since', models.DateTimeField(default=kbpo.clock.now)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('next_try_at', models.DateTimeField(default=kbpo.clock.now)),
                ('reason', models.TextField(blank=True, default='', help_text='Why it waits or was given up, for its owner')),
                ('versions', models.JSONField(default=list, help_text='Names and versions of what was computed')),
                ('done', models.IntegerField(default=0, help_text='Predictions whose metrics are all known')),
                ('total', models.IntegerField(default=0)),
                ('submission', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='computing', to='submissions.submission')),
            ],
            options={
                'db_table_comment': "Progress of computing a submission's metrics",
            },
        ),
        migrations.CreateModel(
            name='Scorer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200)),
                ('version', models.CharField(blank=True, max_length=200)),
                ('prompt', models.CharField(blank=True, max_length=200)),
                ('presentation', models.CharField(blank=True, help_text='How texts are shown to what is computed here; empty: as they are', max_length=100)),
                ('source', models.CharField(choices=[('computed', 'computed here'), ('brought', 'brought by an admin')], default='brought', max_length=8)),
                ('is_used', models.BooleanField(default=True, help_text="Whether the model g may learn from it: an admin's switch")),
                ('made_at', models.DateTimeField(default=kbpo.clock.now)),
                ('corpus', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='scorers', to='corpus.corpus')),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table_comment': 'Metrics and judges, each in one version and with one prompt',
                'constraints': [models.UniqueConstraint(fields=('corpus', 'name', 'version', 'prompt', 'presentation', 'source'), name='scorer_once')],
            },
        ),
        migrations.CreateModel(
            name='Score',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('value', models.FloatField(help_text='NULL where a metric is not defined', null=True)),
                ('made_at', models.DateTimeField(default=kbpo.clock.now)),
                ('instance', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='instances.instance')),
                ('scorer', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='scores', to='scores.scorer')),
            ],
            options={
                'db_table_comment': 'Scores by metrics and judges, never judgments',
                'constraints': [models.UniqueConstraint(fields=('scorer', 'instance'), name='score_once_a_scorer')],
            },
        ),
    ]
