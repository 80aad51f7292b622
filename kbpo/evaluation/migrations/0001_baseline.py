import django.db.models.deletion
import kbpo.clock
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [
        ("evaluation", "0001_initial"),
        ("evaluation", "0002_flips"),
        ("evaluation", "0003_looks"),
        ("evaluation", "0004_inquiries"),
        ("evaluation", "0002_printed"),
        ("evaluation", "0003_targets_of_slices"),
    ]
    initial = True

    dependencies = [
        ('accounts', '__first__'),
        ('instances', '0001_baseline'),
        ('submissions', '0001_baseline'),
        ('tracks', '0001_baseline'),
    ]

    operations = [
        migrations.CreateModel(
            name='Evaluation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField(help_text='Counts from 1 within the track')),
                ('stage_end', models.BooleanField(default=False, help_text="A submission's judging was complete: kept for ever")),
                ('made_at', models.DateTimeField(default=kbpo.clock.now)),
                ('seconds', models.FloatField(default=0.0)),
                ('comparisons', models.JSONField(default=dict, help_text='Ranks, tie groups and covariances of the board')),
                ('settings', models.JSONField(default=dict, help_text='Versions, seeds, scope, counts of labels and documents')),
                ('printed', models.JSONField(help_text='What the board printed of one that a later one of its day replaced: it has no estimates any more', null=True)),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='evaluations', to='tracks.track')),
            ],
            options={
                'db_table_comment': 'Scoring runs',
                'constraints': [models.UniqueConstraint(fields=('track', 'number'), name='evaluation_number_once')],
            },
        ),
        migrations.CreateModel(
            name='Estimate',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('quantity', models.CharField(help_text='precision, recall, f1, instance_recall', max_length=16)),
                ('criterion', models.CharField(max_length=24)),
                ('distribution', models.CharField(help_text='Distribution of the precision that it rests on', max_length=24)),
                ('method', models.CharField(help_text='simple, joint, centred, expert', max_length=16)),
                ('slice', models.CharField(blank=True, help_text='group:name of a slice; empty for the whole', max_length=160)),
                ('value', models.FloatField(null=True)),
                ('variance', models.FloatField(null=True)),
                ('low80', models.FloatField(null=True)),
                ('high80', models.FloatField(null=True)),
                ('low95', models.FloatField(null=True)),
                ('high95', models.FloatField(null=True)),
                ('n_labels', models.IntegerField(default=0, help_text='Labelled predictions (targets) behind it')),
                ('n_missing', models.IntegerField(default=0, help_text='Drawn, but not labelled yet or given up')),
                ('n_documents', models.IntegerField(default=0, help_text='Annotated documents behind it (recall, F1)')),
                ('n_checked', models.IntegerField(default=0, help_text='Judgments behind it that an expert has checked')),
                ('n_predictions', models.IntegerField(help_text="Predictions of the submission that lie in the slice, a target's counted once", null=True)),
                ('kind', models.CharField(default='final', help_text='final, provisional', max_length=12)),
                ('note', models.CharField(blank=True, max_length=200)),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='estimates', to='submissions.submission')),
                ('evaluation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='estimates', to='evaluation.evaluation')),
            ],
            options={
                'db_table_comment': 'Numbers with their intervals',
                'constraints': [models.UniqueConstraint(fields=('evaluation', 'submission', 'quantity', 'criterion', 'distribution', 'method', 'slice'), name='estimate_once')],
            },
        ),
        migrations.CreateModel(
            name='Flip',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('criterion', models.CharField(max_length=24)),
                ('before', models.FloatField(help_text='1 right, 0 wrong')),
                ('now', models.FloatField()),
                ('made_at', models.DateTimeField(default=kbpo.clock.now)),
                ('instance', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='instances.instance')),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='flips', to='submissions.submission')),
            ],
            options={
                'db_table_comment': 'Verdicts that turned, as they were told to teams',
                'indexes': [models.Index(fields=['submission', 'made_at'], name='evaluation__submiss_3f2e44_idx')],
            },
        ),
        migrations.CreateModel(
            name='Inquiry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(db_index=True, max_length=16)),
                ('status_since', models.DateTimeField(default=kbpo.clock.now)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('next_try_at', models.DateTimeField(default=kbpo.clock.now)),
                ('reason', models.TextField(blank=True, default='', help_text='Why it waits or was given up, for its owner')),
                ('what', models.CharField(help_text='pooling, checks, adding_up', max_length=24)),
                ('terms', models.JSONField(default=dict, help_text='What exactly was asked')),
                ('answer', models.JSONField(help_text='What was worked out, as pages show it', null=True)),
                ('made_at', models.DateTimeField(help_text='When the answer was', null=True)),
                ('seconds', models.FloatField(default=0.0)),
                ('asked_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='inquiries', to='tracks.track')),
            ],
            options={
                'db_table_comment': 'What admins asked to be worked out of a track, the last of each sort',
                'constraints': [models.UniqueConstraint(fields=('track', 'what'), name='inquiry_once_a_track')],
            },
        ),
        migrations.CreateModel(
            name='InterimInterval',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('order', models.PositiveSmallIntegerField(default=0, help_text='The order of judgments that was judged then')),
                ('n', models.IntegerField(help_text='Judgments of this submission that counted then')),
                ('n_before', models.IntegerField(help_text='Those among them that existed before its sample was drawn')),
                ('value', models.FloatField()),
                ('low80', models.FloatField()),
                ('high80', models.FloatField()),
                ('low95', models.FloatField()),
                ('high95', models.FloatField()),
                ('variance', models.FloatField(help_text='What the intervals rest on')),
                ('quantile80', models.FloatField(help_text='In the place of the normal quantile')),
                ('quantile95', models.FloatField()),
                ('made_at', models.DateTimeField(default=kbpo.clock.now)),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='interim_intervals', to='submissions.submission')),
            ],
            options={
                'db_table': 'evaluation_look',
                'db_table_comment': 'Live intervals as they were shown, one whenever judgments had come',
                'constraints': [models.UniqueConstraint(fields=('submission', 'order', 'n'), name='look_once_a_number_of_judgments')],
            },
        ),
        migrations.CreateModel(
            name='Rescoring',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(db_index=True, max_length=16)),
                ('status_since', models.DateTimeField(default=kbpo.clock.now)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('next_try_at', models.DateTimeField(default=kbpo.clock.now)),
                ('reason', models.TextField(blank=True, default='', help_text='Why it waits or was given up, for its owner')),
                ('state', models.JSONField(default=dict, help_text='What the last evaluation saw, as counts')),
                ('track', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='rescoring', to='tracks.track')),
            ],
            options={
                'db_table_comment': 'Watches over the freshness of scores, one a track',
            },
        ),
        migrations.CreateModel(
            name='Slice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=80)),
                ('rule', models.JSONField(help_text='See kbpo/evaluation/slices/rule.py: predicate, subject_type, …, weight')),
                ('made_at', models.DateTimeField(default=kbpo.clock.now)),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='slices', to='tracks.track')),
            ],
            options={
                'db_table_comment': 'Slices that admins defined',
                'constraints': [models.UniqueConstraint(fields=('track', 'name'), name='slice_once_a_track')],
            },
        ),
    ]
