import django.db.models.deletion
import kbpo.clock
import kbpo.corpus.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [
        ("sampling", "0001_initial"),
        ("sampling", "0002_test_for_leaked_answers"),
        ("sampling", "0003_who_pays_for_a_question"),
        ("sampling", "0004_upload_annotations"),
        ("sampling", "0005_leak_tests_of_unlikely"),
    ]
    initial = True

    dependencies = [
        ('corpus', '0001_baseline'),
        ('instances', '0001_baseline'),
        ('submissions', '0001_baseline'),
        ('tracks', '0001_baseline'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='AnnotationUpload',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(db_index=True, max_length=16)),
                ('status_since', models.DateTimeField(default=kbpo.clock.now)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('next_try_at', models.DateTimeField(default=kbpo.clock.now)),
                ('reason', models.TextField(blank=True, default='', help_text='Why it waits or was given up, for its owner')),
                ('found', models.JSONField(default=dict, help_text='What a trial counted')),
                ('made_at', models.DateTimeField(default=kbpo.clock.now)),
                ('file', models.FileField(max_length=300, upload_to='annotations/%Y/%m/')),
                ('file_name', models.CharField(max_length=255)),
                ('mentions', models.FileField(max_length=300, upload_to='annotations/%Y/%m/')),
                ('mentions_name', models.CharField(max_length=255)),
                ('which', models.CharField(choices=[('drawn', 'the documents that were drawn and are not annotated'), ('sample', 'documents that are drawn now, uniformly'), ('all', 'every document of the corpus')], max_length=8)),
                ('size', models.PositiveIntegerField(help_text='How many documents are drawn now', null=True)),
                ('seed', models.BigIntegerField(help_text='Of that draw: a trial draws what is loaded later')),
                ('closed', models.BooleanField(default=False, help_text='What is not marked is false, not only missing')),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='annotation_uploads', to='tracks.track')),
            ],
            options={
                'db_table_comment': 'Annotations that admins uploaded, and what became of them',
            },
        ),
        migrations.CreateModel(
            name='DocumentBatch',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('design', models.CharField(choices=[('uniform', 'Uniform'), ('two_stage', 'two stages')], default='uniform', max_length=12)),
                ('stage', models.PositiveSmallIntegerField(default=1)),
                ('size', models.PositiveIntegerField()),
                ('seed', models.BigIntegerField(help_text="Seed of numpy's PCG64")),
                ('settings', models.JSONField(default=dict, help_text='Documents of both stages, uniform share, entities: as it was')),
                ('drawn_at', models.DateTimeField(default=kbpo.clock.now)),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='document_batches', to='tracks.track')),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table_comment': 'Draws of documents to be annotated whole',
            },
        ),
        migrations.CreateModel(
            name='DocumentSample',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveIntegerField(default=0, help_text='Place in the random order of its batch')),
                ('design', models.CharField(default='uniform', max_length=12)),
                ('stage', models.PositiveSmallIntegerField(default=1)),
                ('probability', models.FloatField()),
                ('seed', models.BigIntegerField(null=True)),
                ('drawn_at', models.DateTimeField(default=kbpo.clock.now)),
                ('settled_at', models.DateTimeField(help_text='When its annotation was complete', null=True)),
                ('batch', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='samples', to='sampling.documentbatch')),
                ('document', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='corpus.document')),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='document_samples', to='tracks.track')),
            ],
            options={
                'db_table_comment': 'Documents drawn to be annotated whole',
            },
        ),
        migrations.CreateModel(
            name='ExpertRound',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveSmallIntegerField(help_text='Counts from 1 within the track')),
                ('budget', models.PositiveIntegerField(help_text='Checks that were wanted: the expected number of new ones')),
                ('drawn_at', models.DateTimeField(default=kbpo.clock.now)),
                ('ended_at', models.DateTimeField(help_text='When all was answered, or the rest was given up', null=True)),
                ('released', models.FloatField(default=1.0, help_text='Once ended: a check counts if its number < released x chance')),
                ('drawn_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='expert_rounds', to='tracks.track')),
            ],
            options={
                'db_table_comment': 'Draws of judgments for experts to check',
            },
        ),
        migrations.CreateModel(
            name='ExpertCheck',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('order', models.FloatField(help_text='Random number / chance: checks are answered in this order')),
                ('interface', models.CharField(max_length=32)),
                ('payload', models.JSONField(help_text='All that the page needs; neither claims nor what the crowd said')),
                ('shown', models.JSONField(default=list)),
                ('taken_at', models.DateTimeField(null=True)),
                ('draft', models.JSONField(help_text='A raw answer that is not finished', null=True)),
                ('raw', models.JSONField(help_text='The answer as it was sent', null=True)),
                ('value', models.JSONField(help_text='Target -> value; empty: it cannot be answered', null=True)),
                ('answered_at', models.DateTimeField(null=True)),
                ('answered_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('taken_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('target', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='instances.target')),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='expert_checks', to='tracks.track')),
                ('round', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='checks', to='sampling.expertround')),
            ],
            options={
                'db_table_comment': 'Judged targets that experts check, with their answers',
            },
        ),
        migrations.CreateModel(
            name='ExpertChance',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('probability', models.FloatField(help_text='It is checked iff its keyed random number lies below')),
                ('inclusion', models.FloatField(help_text='Its inclusion probability then; 0: it counted for single systems alone')),
                ('target', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='instances.target')),
                ('round', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='chances', to='sampling.expertround')),
            ],
            options={
                'db_table_comment': 'Probabilities of expert checks, append-only',
            },
        ),
        migrations.CreateModel(
            name='Further',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(db_index=True, max_length=16)),
                ('status_since', models.DateTimeField(default=kbpo.clock.now)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('next_try_at', models.DateTimeField(default=kbpo.clock.now)),
                ('reason', models.TextField(blank=True, default='', help_text='Why it waits or was given up, for its owner')),
                ('order', models.PositiveSmallIntegerField(help_text='Which order of its submission it prepares, from 1')),
                ('plan', models.JSONField(default=dict, help_text="Options by half-width, as in a submission's plan")),
                ('made_at', models.DateTimeField(null=True)),
                ('submission', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='further', to='submissions.submission')),
            ],
            options={
                'db_table_comment': 'Plans for more judgments of scored submissions',
            },
        ),
        migrations.CreateModel(
            name='LeakTest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('size', models.IntegerField(help_text='Judged targets that tell something')),
                ('stated', models.IntegerField(help_text='Those of them that the run states')),
                ('expected', models.FloatField(help_text='How many it would state on average by chance')),
                ('of_unlikely', models.BooleanField(default=False, help_text='These three count only what few other runs state')),
                ('p_value', models.FloatField()),
                ('adjusted', models.FloatField(help_text='For the number of earlier runs (Holm 1979)')),
                ('seen', models.BooleanField(help_text='It is treated as if it had seen the judgments')),
                ('tested_at', models.DateTimeField(default=kbpo.clock.now)),
                ('decided_at', models.DateTimeField(help_text='When an admin confirmed or lifted it', null=True)),
                ('lifted', models.BooleanField(default=False)),
                ('why', models.TextField(blank=True, default='')),
                ('decided_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('earlier', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='submissions.submission')),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='leak_tests', to='submissions.submission')),
            ],
            options={
                'db_table_comment': 'Runs tested for having been made from leaked answers',
            },
        ),
        migrations.CreateModel(
            name='Overlap',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=24)),
                ('value', models.FloatField()),
                ('first', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='submissions.submission')),
                ('second', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='submissions.submission')),
            ],
            options={
                'db_table_comment': 'Pairwise overlaps of sampling distributions, computed once a pair',
            },
        ),
        migrations.CreateModel(
            name='SampleBatch',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('design', models.CharField(choices=[('poisson', 'each relation at most once, with a chance of its own'), ('iid', 'draws with replacement, as published')], max_length=8)),
                ('stage', models.PositiveSmallIntegerField(default=1)),
                ('seed', models.BigIntegerField(help_text="Seed of numpy's PCG64 (design iid)")),
                ('size', models.IntegerField(help_text='Draws (iid) or expected new questions (poisson)')),
                ('settings', models.JSONField(default=dict, help_text='λ, target and planned variance, model version, reason: as they were')),
                ('drawn_at', models.DateTimeField(default=kbpo.clock.now)),
                ('settled_at', models.DateTimeField(help_text='When everything drawn was judged, or known to be unanswerable', null=True)),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='batches', to='submissions.submission')),
            ],
            options={
                'db_table_comment': 'Batches of draws',
            },
        ),
        migrations.CreateModel(
            name='Sample',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('multiplicity', models.PositiveIntegerField(default=1)),
                ('probability', models.FloatField()),
                ('pays', models.BooleanField(db_default=True, default=True, help_text='Of submissions that need the same question, the one that pays if it is asked')),
                ('instance', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='samples', to='instances.instance')),
                ('target', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='samples', to='instances.target')),
                ('batch', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='samples', to='sampling.samplebatch')),
            ],
            options={
                'db_table_comment': 'What was drawn, with its probability at the time',
            },
        ),
        migrations.CreateModel(
            name='OwnThresholds',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('pi', models.BinaryField(help_text='float64, little-endian, one a target of the submission by ascending number')),
                ('batch', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='own', to='sampling.samplebatch')),
            ],
            options={
                'db_table_comment': "Inclusion probabilities of submissions' own samples",
            },
        ),
        migrations.CreateModel(
            name='SamplingDistribution',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=24)),
                ('total', models.FloatField(help_text='Σ weight over X_i')),
                ('n', models.IntegerField(help_text='|X_i|')),
                ('made_at', models.DateTimeField(default=kbpo.clock.now)),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='distributions', to='submissions.submission')),
            ],
            options={
                'db_table_comment': 'Normalisers of p_i, one a submission and kind',
            },
        ),
        migrations.AddField(
            model_name='samplebatch',
            name='distribution',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='batches', to='sampling.samplingdistribution'),
        ),
        migrations.CreateModel(
            name='Sweep',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('workers', models.PositiveSmallIntegerField(help_text='Answers to each question')),
                ('price', models.DecimalField(decimal_places=2, help_text='For one answer, with fee', max_digits=8)),
                ('reward', models.DecimalField(decimal_places=2, help_text='What one worker gets', max_digits=8)),
                ('seconds', models.PositiveIntegerField(help_text='Expected seconds for one answer')),
                ('ordered_at', models.DateTimeField(default=kbpo.clock.now)),
                ('settled_at', models.DateTimeField(help_text='When all of it was judged, or given up', null=True)),
                ('closed_at', models.DateTimeField(help_text='When what it did not need was given back', null=True)),
                ('stopped_at', models.DateTimeField(help_text='When an admin stopped it: what is left is not asked', null=True)),
                ('documents', models.ManyToManyField(related_name='sweeps', to='sampling.documentsample')),
                ('submissions', models.ManyToManyField(related_name='+', to='submissions.submission')),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sweeps', to='tracks.track')),
                ('who', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table_comment': 'Orders to ask about all that was left unmarked in annotated documents',
            },
        ),
        migrations.CreateModel(
            name='SweepTarget',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('order', models.FloatField(help_text='Random number of its own: questions go out in this order')),
                ('done_at', models.DateTimeField(null=True)),
                ('sweep', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='targets', to='sampling.sweep')),
                ('target', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='instances.target')),
            ],
            options={
                'db_table_comment': 'Targets that sweeps ask about',
            },
        ),
        migrations.CreateModel(
            name='Threshold',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('pi', models.FloatField()),
                ('batch', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='thresholds', to='sampling.samplebatch')),
                ('target', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='thresholds', to='instances.target')),
            ],
            options={
                'db_table_comment': 'Raises of inclusion probabilities, append-only',
            },
        ),
        migrations.CreateModel(
            name='TrackKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('secret', models.CharField(default=kbpo.corpus.models.new_key, max_length=64)),
                ('track', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='key', to='tracks.track')),
            ],
            options={
                'db_table_comment': 'Secret keys of tracks, for seeds',
            },
        ),
        migrations.AddConstraint(
            model_name='documentbatch',
            constraint=models.UniqueConstraint(condition=models.Q(('stage', 2)), fields=('track',), name='second_stage_of_documents_once'),
        ),
        migrations.AddConstraint(
            model_name='documentbatch',
            constraint=models.CheckConstraint(condition=models.Q(('stage__in', [1, 2])), name='document_batch_has_stage'),
        ),
        migrations.AddConstraint(
            model_name='documentsample',
            constraint=models.UniqueConstraint(fields=('track', 'document'), name='document_drawn_once'),
        ),
        migrations.AddConstraint(
            model_name='documentsample',
            constraint=models.CheckConstraint(condition=models.Q(('probability__gt', 0), ('probability__lte', 1)), name='document_has_probability'),
        ),
        migrations.AddConstraint(
            model_name='expertround',
            constraint=models.UniqueConstraint(fields=('track', 'number'), name='expert_round_number_once'),
        ),
        migrations.AddConstraint(
            model_name='expertround',
            constraint=models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True)), fields=('track',), name='expert_round_open_once'),
        ),
        migrations.AddConstraint(
            model_name='expertround',
            constraint=models.CheckConstraint(condition=models.Q(('released__gte', 0), ('released__lte', 1)), name='expert_round_released_is_share'),
        ),
        migrations.AddConstraint(
            model_name='expertcheck',
            constraint=models.UniqueConstraint(fields=('track', 'target'), name='expert_check_once'),
        ),
        migrations.AddConstraint(
            model_name='expertcheck',
            constraint=models.CheckConstraint(condition=models.Q(('answered_at__isnull', True), ('value__isnull', False), _connector='OR'), name='expert_check_answered_has_value'),
        ),
        migrations.AddConstraint(
            model_name='expertchance',
            constraint=models.UniqueConstraint(fields=('round', 'target'), name='expert_chance_once'),
        ),
        migrations.AddConstraint(
            model_name='expertchance',
            constraint=models.CheckConstraint(condition=models.Q(('inclusion__gte', 0), ('inclusion__lte', 1), ('probability__gt', 0), ('probability__lte', 1)), name='expert_chance_is_probability'),
        ),
        migrations.AddConstraint(
            model_name='leaktest',
            constraint=models.UniqueConstraint(fields=('submission', 'earlier'), name='leak_tested_once'),
        ),
        migrations.AddConstraint(
            model_name='leaktest',
            constraint=models.CheckConstraint(condition=models.Q(('adjusted__lte', 1), ('p_value__gte', 0), ('p_value__lte', 1)), name='leak_test_has_probability'),
        ),
        migrations.AddConstraint(
            model_name='overlap',
            constraint=models.UniqueConstraint(fields=('first', 'second', 'kind'), name='overlap_once'),
        ),
        migrations.AddConstraint(
            model_name='sample',
            constraint=models.UniqueConstraint(fields=('batch', 'target', 'instance'), name='sample_once', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='sample',
            constraint=models.CheckConstraint(condition=models.Q(('probability__gt', 0), ('probability__lte', 1)), name='sample_has_probability'),
        ),
        migrations.AddConstraint(
            model_name='samplingdistribution',
            constraint=models.UniqueConstraint(fields=('submission', 'kind'), name='distribution_once'),
        ),
        migrations.AddConstraint(
            model_name='samplingdistribution',
            constraint=models.CheckConstraint(condition=models.Q(('n__gt', 0), ('total__gt', 0)), name='distribution_not_empty'),
        ),
        migrations.AddConstraint(
            model_name='samplebatch',
            constraint=models.UniqueConstraint(fields=('submission', 'distribution', 'design', 'stage'), name='batch_once_a_stage'),
        ),
        migrations.AddConstraint(
            model_name='sweep',
            constraint=models.UniqueConstraint(condition=models.Q(('settled_at__isnull', True)), fields=('track',), name='sweep_open_once'),
        ),
        migrations.AddConstraint(
            model_name='sweep',
            constraint=models.CheckConstraint(condition=models.Q(('price__gte', 0), ('workers__gt', 0)), name='sweep_costs'),
        ),
        migrations.AddIndex(
            model_name='sweeptarget',
            index=models.Index(condition=models.Q(('done_at__isnull', True)), fields=['sweep', 'order'], name='sweep_target_open'),
        ),
        migrations.AddConstraint(
            model_name='sweeptarget',
            constraint=models.UniqueConstraint(fields=('sweep', 'target'), name='sweep_target_once'),
        ),
        migrations.AddConstraint(
            model_name='threshold',
            constraint=models.UniqueConstraint(fields=('batch', 'target'), name='threshold_once'),
        ),
        migrations.AddConstraint(
            model_name='threshold',
            constraint=models.CheckConstraint(condition=models.Q(('pi__gt', 0), ('pi__lte', 1)), name='threshold_is_probability'),
        ),
    ]
