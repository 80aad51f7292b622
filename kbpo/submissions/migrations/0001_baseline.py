import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.comparison
import django.db.models.functions.text
import kbpo.clock
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [
        ("submissions", "0001_initial"),
        ("submissions", "0002_predictions_of_any_kind"),
        ("submissions", "0003_roles"),
        ("submissions", "0004_name_runs_once_a_team"),
        ("submissions", "0005_who_sees_a_run"),
        ("submissions", "0006_list_predictions"),
        ("submissions", "0002_look_predictions_up_by_instance"),
    ]
    initial = True

    dependencies = [
        ('accounts', '0001_baseline'),
        ('accounts', '__first__'),
        ('corpus', '0001_baseline'),
        ('instances', '0001_baseline'),
        ('tracks', '0001_baseline'),
    ]

    operations = [
        migrations.CreateModel(
            name='Submission',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(db_index=True, max_length=16)),
                ('status_since', models.DateTimeField(default=kbpo.clock.now)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('next_try_at', models.DateTimeField(default=kbpo.clock.now)),
                ('reason', models.TextField(blank=True, default='', help_text='Why it waits or was given up, for its owner')),
                ('name', models.CharField(max_length=80)),
                ('description', models.TextField(blank=True)),
                ('role', models.CharField(choices=[('system', 'a system'), ('baseline', 'a baseline: ranked, and marked as one'), ('reference', 'the reference: written by people, has no rank')], default='system', max_length=9)),
                ('file', models.FileField(max_length=300, upload_to='uploads/%Y/%m/')),
                ('file_name', models.CharField(max_length=255)),
                ('file_size', models.BigIntegerField()),
                ('file_digest', models.CharField(db_index=True, help_text='SHA-256 of the bytes as uploaded', max_length=64)),
                ('run_id', models.CharField(blank=True, max_length=200)),
                ('door', models.CharField(blank=True, help_text='How the file was read: tac_kb, json_lines', max_length=16)),
                ('counts', models.JSONField(default=dict, help_text='relations (to be evaluated), relation_lines, set_aside, entities, documents, lines, errors, warnings, infos, by_code')),
                ('good_lines_only', models.BooleanField(default=False, help_text='The owner said: evaluate the good lines')),
                ('plan', models.JSONField(default=dict, help_text='The plan that was shown: draws, new questions, price, seconds')),
                ('target_half_width', models.DecimalField(decimal_places=3, help_text="The owner's choice", max_digits=4, null=True)),
                ('stage_reason', models.CharField(blank=True, help_text='Why it stopped: target, ranked, budget, all, stages, exhausted', max_length=24)),
                ('orders', models.PositiveSmallIntegerField(default=0, help_text='How often more was ordered after it was scored')),
                ('idempotency_key', models.CharField(max_length=80, null=True)),
                ('received_at', models.DateTimeField(default=kbpo.clock.now)),
                ('read_at', models.DateTimeField(null=True)),
                ('planned_at', models.DateTimeField(null=True)),
                ('confirmed_at', models.DateTimeField(null=True)),
                ('sampled_at', models.DateTimeField(null=True)),
                ('scored_at', models.DateTimeField(null=True)),
                ('withdrawn_at', models.DateTimeField(null=True)),
                ('is_private', models.BooleanField(default=False, help_text='Others do not see it until its team publishes it, but in a data release of the closed track, without its name')),
                ('is_anonymous', models.BooleanField(default=False, help_text='Others see neither its team, its name nor its description')),
                ('paper_url', models.URLField(blank=True, max_length=300)),
                ('code_url', models.URLField(blank=True, max_length=300)),
                ('deleted_at', models.DateTimeField(help_text='Of a discard: when its team deleted what was left of it', null=True)),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='submissions', to='accounts.team')),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='submissions', to='tracks.track')),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='submissions', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table_comment': 'Submissions and where they are on their journey',
                'constraints': [models.UniqueConstraint(fields=('user', 'idempotency_key'), name='idempotency_key_once_a_user'), models.UniqueConstraint(models.F('team'), django.db.models.functions.text.Lower('name'), condition=models.Q(('status__in', ['refused', 'expired']), models.Q(('confirmed_at__isnull', True), ('status', 'withdrawn')), _connector='OR', _negated=True), name='name_once_a_team')],
            },
        ),
        migrations.CreateModel(
            name='Tally',
            fields=[
                ('submission', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='tally', serialize=False, to='submissions.submission')),
                ('cells', models.JSONField(help_text='[value of each facet of the kind of track …, band of confidence, how many]')),
                ('first', models.BigIntegerField(help_text='Its first prediction; 0 without any')),
            ],
            options={
                'db_table_comment': 'Counts of what submissions claim, by what it is listed by',
            },
        ),
        migrations.CreateModel(
            name='Problem',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('code', models.CharField(max_length=48)),
                ('severity', models.CharField(choices=[('error', 'error'), ('warning', 'warning'), ('info', 'info')], max_length=8)),
                ('line', models.BigIntegerField(default=0)),
                ('text', models.TextField()),
                ('line_text', models.TextField(blank=True)),
                ('culprit_begin', models.IntegerField(null=True)),
                ('culprit_end', models.IntegerField(null=True)),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='problems', to='submissions.submission')),
            ],
            options={
                'db_table_comment': 'Problems noticed while reading an upload (the first 10,000)',
                'indexes': [models.Index(fields=['submission', 'severity', 'line'], name='submissions_submiss_76b3bf_idx')],
            },
        ),
        migrations.CreateModel(
            name='Prediction',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('confidence', models.FloatField(null=True)),
                ('subject_type', models.CharField(blank=True, max_length=40)),
                ('object_type', models.CharField(blank=True, max_length=40)),
                ('subject_canonical_begin', models.IntegerField(null=True)),
                ('subject_canonical_end', models.IntegerField(null=True)),
                ('object_canonical_begin', models.IntegerField(null=True)),
                ('object_canonical_end', models.IntegerField(null=True)),
                ('subject_link', models.TextField(blank=True)),
                ('object_link', models.TextField(blank=True)),
                ('provenance', django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), help_text='begin, end, begin, end …, half-open', null=True, size=None)),
                ('subject_entity', models.IntegerField(help_text="The system's own entity, numbered within the submission", null=True)),
                ('object_entity', models.IntegerField(null=True)),
                ('same_predicate', models.IntegerField(default=1, help_text="|rel(x)|: predictions of this submission with x's predicate")),
                ('same_subject', models.IntegerField(default=1, help_text='|subj(x)|: predictions whose subject is the same entity')),
                ('subject_facts', models.IntegerField(default=1, help_text='|subj-relns(x)|: distinct (predicate, object entity) of that subject')),
                ('line', models.IntegerField(default=0)),
                ('instance', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='predictions', to='instances.instance')),
                ('predicate', models.ForeignKey(db_constraint=False, db_index=False, help_text="The instance's, so that a run can be listed by it", null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='corpus.predicate')),
                ('submission', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='predictions', to='submissions.submission')),
            ],
            options={
                'db_table_comment': 'What a submission claims',
                'indexes': [models.Index(fields=['submission', 'predicate', 'id'], name='prediction_by_predicate'), models.Index(models.F('submission'), django.db.models.functions.comparison.Coalesce('confidence', -1.0), models.F('id'), name='prediction_by_confidence')],
                'constraints': [models.UniqueConstraint(fields=('instance', 'submission'), name='prediction_once')],
            },
        ),
    ]
