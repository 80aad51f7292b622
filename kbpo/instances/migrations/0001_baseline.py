import django.db.models.deletion
import kbpo.clock
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [
        ("instances", "0001_initial"),
        ("instances", "0002_targets_by_content"),
        ("instances", "0003_scores_have_a_room"),
        ("instances", "0004_labels_of_questions"),
        ("instances", "0002_say_predicted"),
        ("instances", "0003_refer_without_lookups"),
        ("instances", "0004_call_missing_labels_nonresponse"),
    ]
    initial = True

    dependencies = [
        ('corpus', '0001_baseline'),
    ]

    operations = [
        migrations.CreateModel(
            name='Target',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=16)),
                ('a_begin', models.IntegerField(default=0)),
                ('a_end', models.IntegerField(default=0)),
                ('b_begin', models.IntegerField(default=0)),
                ('b_end', models.IntegerField(default=0)),
                ('key', models.UUIDField(help_text="MD5 of 'corpus|kind|document|a_begin|a_end|b_begin|b_end', or SHA-256 of 'corpus|kind|content'", unique=True)),
                ('content', models.JSONField(help_text='What it is, where it lies in no document', null=True)),
                ('u', models.FloatField(help_text="Keyed hash of key in [0, 1): the target's random number")),
                ('corpus', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='corpus.corpus')),
                ('document', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='targets', to='corpus.document')),
            ],
            options={
                'db_table_comment': 'What people are asked about, by content',
                'indexes': [models.Index(fields=['document', 'kind'], name='instances_t_documen_0aab10_idx')],
                'constraints': [models.CheckConstraint(condition=models.Q(('u__gte', 0), ('u__lt', 1)), name='target_u_in_unit_interval'), models.CheckConstraint(condition=models.Q(('a_begin__lt', models.F('b_begin')), models.Q(('a_begin', models.F('b_begin')), ('a_end__lte', models.F('b_end'))), models.Q(('kind', 'pair'), _negated=True), _connector='OR'), name='pair_smaller_span_first')],
            },
        ),
        migrations.CreateModel(
            name='Label',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('value', models.JSONField()),
                ('source', models.CharField(choices=[('expert', 'Expert'), ('import', 'Import'), ('crowd', 'Crowd'), ('document', 'Document')], max_length=8)),
                ('method', models.CharField(help_text='majority, gold, nonresponse …', max_length=24)),
                ('n', models.PositiveSmallIntegerField(help_text='Number of responses behind it')),
                ('disagreement', models.FloatField(default=0.0, help_text='Share of responses that differ from the value, worst part')),
                ('question', models.PositiveBigIntegerField(help_text='The number of the question that it came from; none: something else', null=True)),
                ('again', models.PositiveSmallIntegerField(help_text='How often its question had been aggregated before: it stands in the place of all that this had said of the target; none: it was said first', null=True)),
                ('origin', models.CharField(help_text='What it came from, for people; once a target', max_length=64)),
                ('created_at', models.DateTimeField(default=kbpo.clock.now, help_text='Visible to teams that predict the target from here on')),
                ('public_at', models.DateTimeField(help_text='Visible to everybody from here on', null=True)),
                ('target', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='labels', to='instances.target')),
            ],
            options={
                'db_table_comment': 'Judgments, append-only',
                'indexes': [models.Index(condition=models.Q(('question__isnull', False)), fields=['question'], name='label_by_question')],
                'constraints': [models.UniqueConstraint(fields=('target', 'origin'), name='label_once_an_origin'), models.CheckConstraint(condition=models.Q(('again', None), ('question__isnull', False), _connector='OR'), name='label_again_of_a_question')],
            },
        ),
        migrations.CreateModel(
            name='Instance',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('subject_begin', models.IntegerField(null=True)),
                ('subject_end', models.IntegerField(null=True)),
                ('object_begin', models.IntegerField(null=True)),
                ('object_end', models.IntegerField(null=True)),
                ('document', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='corpus.document')),
                ('predicate', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='corpus.predicate')),
                ('target', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='instances', to='instances.target')),
            ],
            options={
                'db_table_comment': 'What systems can say, shared by all of them',
                'constraints': [models.UniqueConstraint(condition=models.Q(('predicate__isnull', True)), fields=('target',), name='instance_once_a_content'), models.UniqueConstraint(fields=('document', 'subject_begin', 'object_begin', 'subject_end', 'object_end', 'predicate'), name='instance_once')],
            },
        ),
    ]
