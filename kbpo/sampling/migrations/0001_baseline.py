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
        ("sampling", "0002_ask_experts_in_one_queue"),
        ("sampling", "0003_say_predicted"),
        ("sampling", "0004_dispute_beside_other_teams"),
        ("sampling", "0005_call_sweeps_follow_ups"),
    ]
    initial = True

    dependencies = [
        ('accounts', '__first__'),
        ('corpus', '0001_baseline'),
        ('instances', '0001_baseline'),
        ('submissions', '0001_baseline'),
        ('tracks', '0001_baseline'),
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
                'constraints': [models.UniqueConstraint(condition=models.Q(('stage', 2)), fields=('track',), name='second_stage_of_documents_once'), models.CheckConstraint(condition=models.Q(('stage__in', [1, 2])), name='document_batch_has_stage')],
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
                'constraints': [models.UniqueConstraint(fields=('track', 'document'), name='document_drawn_once'), models.CheckConstraint(condition=models.Q(('probability__gt', 0), ('probability__lte', 1)), name='document_has_probability')],
            },
        ),
        migrations.CreateModel(
            name='ExpertRound',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('check', 'Check'), ('random', 'Random')], default='check', max_length=8)),
                ('judgment', models.CharField(blank=True, help_text='Kind of judgments that a random draw is of', max_length=8)),
                ('number', models.PositiveSmallIntegerField(help_text='Counts from 1 within track and kind')),
                ('budget', models.PositiveIntegerField(help_text='Judgments that were wanted; of checks the expected number of new ones')),
                ('probability', models.FloatField(help_text='Of each that a random draw could have found', null=True)),
                ('seed', models.BigIntegerField(help_text='Of a random draw; checks have keyed numbers', null=True)),
                ('drawn_at', models.DateTimeField(default=kbpo.clock.now)),
                ('ended_at', models.DateTimeField(help_text='Of checks: when all was answered, or the rest was given up', null=True)),
                ('released', models.FloatField(default=1.0, help_text='Once ended: a check counts if its number < released x chance')),
                ('drawn_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='expert_rounds', to='tracks.track')),
            ],
            options={
                'db_table_comment': 'Draws of judgments for experts, with their chances',
                'constraints': [models.UniqueConstraint(fields=('track', 'kind', 'number'), name='expert_round_number_once'), models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True), ('kind', 'check')), fields=('track',), name='expert_round_open_once'), models.CheckConstraint(condition=models.Q(('released__gte', 0), ('released__lte', 1)), name='expert_round_released_is_share'), models.CheckConstraint(condition=models.Q(models.Q(('kind', 'random'), ('probability__gt', 0), ('probability__lte', 1)), models.Q(('kind', 'check'), ('probability__isnull', True)), _connector='OR'), name='expert_round_random_has_probability')],
            },
        ),
        migrations.CreateModel(
            name='ExpertCheck',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('check', 'drawn to correct scores'), ('dispute', 'disputed'), ('disagreement', 'people were divided'), ('random', 'drawn at random')], default='check', max_length=12)),
                ('status', models.CharField(choices=[('open', 'Open'), ('answered', 'Answered'), ('dropped', 'Dropped')], default='open', max_length=10)),
                ('order', models.FloatField(help_text='Random place in the queue; of checks their random number / chance')),
                ('judgment', models.CharField(blank=True, help_text='Kind of judgment that it is, but of checks', max_length=8)),
                ('question', models.PositiveBigIntegerField(help_text='The number of the question that people answered, if there was one', null=True)),
                ('interface', models.CharField(max_length=32)),
                ('payload', models.JSONField(help_text='All that the page needs; neither claims nor what the crowd said')),
                ('shown', models.JSONField(default=list)),
                ('note', models.TextField(blank=True, help_text='What the researcher says; the expert reads it afterwards')),
                ('raised_at', models.DateTimeField(default=kbpo.clock.now)),
                ('held_until', models.DateTimeField(help_text='Until then nobody but its holder is asked it', null=True)),
                ('draft', models.JSONField(help_text="Its holder's answer so far", null=True)),
                ('raw', models.JSONField(help_text='The answer as it was sent', null=True)),
                ('value', models.JSONField(help_text='Target -> value; empty: it cannot be answered', null=True)),
                ('agrees', models.BooleanField(help_text='Whether the expert says what the label said; not asked of checks', null=True)),
                ('remark', models.TextField(blank=True, help_text='What the expert wrote after seeing the votes')),
                ('answered_at', models.DateTimeField(null=True)),
                ('expert', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('holder', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('raised_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('submission', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='submissions.submission')),
                ('target', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='instances.target')),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='expert_checks', to='tracks.track')),
                ('round', models.ForeignKey(help_text='The draw with its chance; none where it was picked', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='checks', to='sampling.expertround')),
            ],
            options={
                'db_table_comment': 'Judgments that experts are asked about, blind, with what they said',
                'indexes': [models.Index(fields=['status', 'order'], name='expert_check_queue')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('kind', 'check')), fields=('track', 'target'), name='expert_check_once'), models.UniqueConstraint(condition=models.Q(('status', 'open'), models.Q(('kind', 'dispute'), _negated=True)), fields=('track', 'target', 'kind'), name='expert_check_open_once'), models.UniqueConstraint(condition=models.Q(('kind', 'dispute'), ('status', 'open')), fields=('track', 'target', 'submission'), name='expert_dispute_open_once'), models.CheckConstraint(condition=models.Q(('answered_at__isnull', True), ('value__isnull', False), _connector='OR'), name='expert_check_answered_has_value'), models.CheckConstraint(condition=models.Q(models.Q(('status', 'answered'), _negated=True), models.Q(('answered_at__isnull', False), ('raw__isnull', False)), _connector='OR'), name='expert_check_answered_has_answer'), models.CheckConstraint(condition=models.Q(models.Q(('kind__in', ['check', 'random']), ('round__isnull', False)), models.Q(('kind__in', ['dispute', 'disagreement']), ('round__isnull', True)), _connector='OR'), name='expert_check_drawn_has_round')],
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
                'constraints': [models.UniqueConstraint(fields=('round', 'target'), name='expert_chance_once'), models.CheckConstraint(condition=models.Q(('inclusion__gte', 0), ('inclusion__lte', 1), ('probability__gt', 0), ('probability__lte', 1)), name='expert_chance_is_probability')],
            },
        ),
        migrations.CreateModel(
            name='FollowUp',
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
                ('documents', models.ManyToManyField(related_name='follow_ups', to='sampling.documentsample')),
                ('submissions', models.ManyToManyField(related_name='+', to='submissions.submission')),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='follow_ups', to='tracks.track')),
                ('who', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table_comment': 'Orders to ask about all that was left unmarked in annotated documents',
                'constraints': [models.UniqueConstraint(condition=models.Q(('settled_at__isnull', True)), fields=('track',), name='follow_up_open_once'), models.CheckConstraint(condition=models.Q(('price__gte', 0), ('workers__gt', 0)), name='follow_up_costs')],
            },
        ),
        migrations.CreateModel(
            name='FollowUpTarget',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('order', models.FloatField(help_text='Random number of its own: questions go out in this order')),
                ('done_at', models.DateTimeField(null=True)),
                ('follow_up', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='targets', to='sampling.followup')),
                ('target', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='instances.target')),
            ],
            options={
                'db_table_comment': 'Targets that follow-ups ask about',
                'indexes': [models.Index(condition=models.Q(('done_at__isnull', True)), fields=['follow_up', 'order'], name='follow_up_target_open')],
                'constraints': [models.UniqueConstraint(fields=('follow_up', 'target'), name='follow_up_target_once')],
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
                ('predicted', models.IntegerField(help_text='Those of them that the run predicts')),
                ('expected', models.FloatField(help_text='How many it would predict on average by chance')),
                ('of_unlikely', models.BooleanField(default=False, help_text='These three count only what few other runs predict')),
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
                'constraints': [models.UniqueConstraint(fields=('submission', 'earlier'), name='leak_tested_once'), models.CheckConstraint(condition=models.Q(('adjusted__lte', 1), ('p_value__gte', 0), ('p_value__lte', 1)), name='leak_test_has_probability')],
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
                'constraints': [models.UniqueConstraint(fields=('first', 'second', 'kind'), name='overlap_once')],
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
                'constraints': [models.UniqueConstraint(fields=('batch', 'target', 'instance'), name='sample_once', nulls_distinct=False), models.CheckConstraint(condition=models.Q(('probability__gt', 0), ('probability__lte', 1)), name='sample_has_probability')],
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
                'constraints': [models.UniqueConstraint(fields=('submission', 'kind'), name='distribution_once'), models.CheckConstraint(condition=models.Q(('n__gt', 0), ('total__gt', 0)), name='distribution_not_empty')],
            },
        ),
        migrations.AddField(
            model_name='samplebatch',
            name='distribution',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='batches', to='sampling.samplingdistribution'),
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
                'constraints': [models.UniqueConstraint(fields=('batch', 'target'), name='threshold_once'), models.CheckConstraint(condition=models.Q(('pi__gt', 0), ('pi__lte', 1)), name='threshold_is_probability')],
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
            model_name='samplebatch',
            constraint=models.UniqueConstraint(fields=('submission', 'distribution', 'design', 'stage'), name='batch_once_a_stage'),
        ),
    ]
