import annotation.models.evidence
import django.db.models.deletion
import kbpo.clock
import secrets
from decimal import Decimal
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [
        ("annotation", "0001_initial"),
        ("annotation", "0002_keep_state_in_columns"),
        ("annotation", "0003_warn_before_excluding"),
        ("annotation", "0004_let_people_stop_choose_and_change"),
        ("annotation", "0005_note_no_times_of_programs"),
        ("annotation", "0006_pay_more_for_more_work"),
        ("annotation", "0007_payers_are_columns"),
        ("annotation", "0008_reinstate"),
    ]
    initial = True

    dependencies = [
        ('instances', '0001_baseline'),
        ('sampling', '0001_baseline'),
        ('submissions', '0001_baseline'),
        ('tracks', '0001_baseline'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Assignment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(db_index=True, max_length=16)),
                ('status_since', models.DateTimeField(default=kbpo.clock.now)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('next_try_at', models.DateTimeField(default=kbpo.clock.now)),
                ('reason', models.TextField(blank=True, default='', help_text='Why it waits or was given up, for its owner')),
                ('external_id', models.CharField(blank=True, max_length=120)),
                ('platform_status', models.CharField(blank=True, help_text='What its platform last said of it', max_length=12)),
                ('token', models.CharField(default=secrets.token_hex, help_text='In the form; makes a submission once', max_length=64, unique=True)),
                ('leased_until', models.DateTimeField()),
                ('draft', models.JSONField(help_text='Autosaved, so that a reload loses nothing', null=True)),
                ('raw', models.JSONField(help_text='The answer as sent', null=True)),
                ('seconds', models.FloatField(help_text='Time on the page as the server saw it', null=True)),
                ('extra', models.DecimalField(decimal_places=2, default=Decimal('0.00'), help_text="What it earned besides the HIT's reward, because it took more work", max_digits=8)),
                ('accepted_at', models.DateTimeField(default=kbpo.clock.now)),
                ('submitted_at', models.DateTimeField(null=True)),
                ('returned_by', models.CharField(blank=True, choices=[('worker', 'Worker'), ('stopped', 'Stopped'), ('lease', 'Lease'), ('platform', 'Platform')], help_text='How it came back', max_length=8)),
            ],
            options={
                'db_table_comment': "One worker's go at a HIT",
            },
        ),
        migrations.CreateModel(
            name='Considered',
            fields=[
                ('sample', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='considered', serialize=False, to='sampling.sample')),
                ('at', models.DateTimeField(default=kbpo.clock.now)),
            ],
            options={
                'db_table_comment': 'Samples that were considered for questions, and when',
            },
        ),
        migrations.CreateModel(
            name='DocumentOrder',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('documents', models.PositiveIntegerField(help_text='How many were ordered')),
                ('per_token', models.DecimalField(decimal_places=4, help_text='Dollars for one token, to one worker', max_digits=8)),
                ('per_pair', models.DecimalField(decimal_places=4, help_text='Dollars for one pair, to one worker', max_digits=8)),
                ('fee_rate', models.DecimalField(decimal_places=3, default=Decimal('0'), max_digits=4)),
                ('workers', models.PositiveSmallIntegerField(default=3)),
                ('created_at', models.DateTimeField(default=kbpo.clock.now)),
                ('closed_at', models.DateTimeField(help_text='When nothing of it was left to be done, and its money back', null=True)),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='document_orders', to='tracks.track')),
                ('who', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table_comment': 'Orders to annotate documents whole',
            },
        ),
        migrations.CreateModel(
            name='EarlierAnswer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('raw', models.JSONField(help_text='The answer as sent then')),
                ('changed_at', models.DateTimeField(default=kbpo.clock.now)),
                ('assignment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='earlier', to='annotation.assignment')),
            ],
            options={
                'db_table_comment': 'Answers as they were before their workers changed them',
            },
        ),
        migrations.CreateModel(
            name='ExternalType',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('platform', models.CharField(max_length=16)),
                ('endpoint', models.CharField(max_length=200)),
                ('kind', models.CharField(help_text='hit_type, qualification', max_length=16)),
                ('digest', models.CharField(help_text="Of all its properties; a qualification's name", max_length=64)),
                ('external_id', models.CharField(max_length=120)),
                ('created_at', models.DateTimeField(default=kbpo.clock.now)),
            ],
            options={
                'db_table_comment': 'Types of HITs and qualifications on other platforms',
                'constraints': [models.UniqueConstraint(fields=('platform', 'endpoint', 'kind', 'digest'), name='external_type_once')],
            },
        ),
        migrations.CreateModel(
            name='Halt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('payer_kind', models.CharField(help_text='Who pays for the batch that is stopped; none: all', max_length=12, null=True)),
                ('payer_number', models.PositiveBigIntegerField(null=True)),
                ('scope', models.CharField(choices=[('publishing', 'Publishing'), ('all', 'All')], max_length=12)),
                ('why', models.TextField()),
                ('since', models.DateTimeField(default=kbpo.clock.now)),
                ('lifted_at', models.DateTimeField(null=True)),
                ('lifted_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('track', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='halts', to='tracks.track')),
                ('who', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table_comment': 'Stops of publishing or of all work, by administrators',
            },
        ),
        migrations.CreateModel(
            name='HIT',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(db_index=True, max_length=16)),
                ('status_since', models.DateTimeField(default=kbpo.clock.now)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('next_try_at', models.DateTimeField(default=kbpo.clock.now)),
                ('reason', models.TextField(blank=True, default='', help_text='Why it waits or was given up, for its owner')),
                ('platform', models.CharField(max_length=16)),
                ('external_id', models.CharField(blank=True, db_index=True, max_length=120)),
                ('token', models.CharField(default=secrets.token_hex, max_length=64, unique=True)),
                ('order', models.FloatField(default=0.0, help_text='Smallest order of its questions')),
                ('max_assignments', models.PositiveSmallIntegerField(default=3)),
                ('reward', models.DecimalField(decimal_places=2, max_digits=8)),
                ('expires_at', models.DateTimeField(null=True)),
                ('called_at', models.DateTimeField(help_text='When its platform was first asked to put it up', null=True)),
                ('endpoint', models.CharField(blank=True, help_text='Where its platform was asked: sandbox, real …', max_length=200)),
                ('platform_status', models.CharField(blank=True, help_text='What its platform last said: open, gone …', max_length=8)),
                ('renewed_at', models.DateTimeField(help_text='It is offered again once after it expired', null=True)),
                ('checked_at', models.DateTimeField(help_text='When its answers were last listed', null=True)),
                ('taken_down_at', models.DateTimeField(help_text='By a stop: it is offered again when that is lifted', null=True)),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='hits', to='tracks.track')),
            ],
            options={
                'db_table_comment': 'Questions as published on a platform',
            },
        ),
        migrations.AddField(
            model_name='assignment',
            name='hit',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='assignments', to='annotation.hit'),
        ),
        migrations.CreateModel(
            name='OrderedDocument',
            fields=[
                ('sample', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='ordered', serialize=False, to='sampling.documentsample')),
                ('order', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='ordered', to='annotation.documentorder')),
            ],
            options={
                'db_table_comment': 'Documents of orders, each at most once a track',
            },
        ),
        migrations.CreateModel(
            name='Pilot',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('interface', models.CharField(default='relation', help_text='What its items are asked through', max_length=32)),
                ('workers', models.PositiveSmallIntegerField(default=5)),
                ('items', models.PositiveIntegerField(default=200)),
                ('seed', models.BigIntegerField(help_text='Of the draw of its items')),
                ('made_at', models.DateTimeField(default=kbpo.clock.now)),
                ('made_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='pilots', to='tracks.track')),
            ],
            options={
                'db_table_comment': 'Pilot batches: k workers on n items',
            },
        ),
        migrations.CreateModel(
            name='PlatformBooks',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('platform', models.CharField(max_length=16)),
                ('endpoint', models.CharField(blank=True, max_length=200)),
                ('polled_at', models.DateTimeField(null=True)),
                ('held_until', models.DateTimeField(help_text='Somebody looks at it, and nobody else does until then', null=True)),
                ('hinted_at', models.DateTimeField(help_text='Something is said to have happened there', null=True)),
                ('confirm_url', models.URLField(blank=True, help_text='By which an admin confirms that notifications may come here', max_length=1000)),
                ('available', models.DecimalField(decimal_places=2, max_digits=12, null=True)),
                ('on_hold', models.DecimalField(decimal_places=2, max_digits=12, null=True)),
                ('baseline', models.DecimalField(decimal_places=2, help_text='Available, on hold and paid by us, when first read', max_digits=12, null=True)),
                ('differences', models.JSONField(default=list, help_text='Sentences: where the two books disagree')),
                ('read_at', models.DateTimeField(null=True)),
                ('trouble', models.TextField(blank=True, help_text='Why the books could not be read')),
            ],
            options={
                'db_table_comment': 'What platforms say of their balance and HITs, beside our books',
                'constraints': [models.UniqueConstraint(fields=('platform', 'endpoint'), name='books_once')],
            },
        ),
        migrations.CreateModel(
            name='Policy',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('gold_rate', models.FloatField(default=0.0, help_text='Share of questions that are gold, for each worker')),
                ('aggregation', models.CharField(choices=[('majority', 'majority'), ('dawid_skene', 'Dawid and Skene’s model')], default='majority', max_length=16)),
                ('model', models.JSONField(default=dict, help_text='Interface -> prior and confusion matrices of its last fit, by worker')),
                ('fitted_at', models.DateTimeField(null=True)),
                ('revision', models.PositiveIntegerField(default=0, help_text='Counts the times that labels were re-aggregated')),
                ('divided_limit', models.PositiveSmallIntegerField(default=20, help_text='Judgments that people were divided about which the clock keeps waiting for experts')),
                ('random_limit', models.PositiveSmallIntegerField(default=5, help_text='Judgments of each kind, drawn at random, which the clock keeps waiting for experts')),
                ('divided_at', models.DateTimeField(help_text='When the clock last looked for them', null=True)),
                ('exclude_for', models.JSONField(default=annotation.models.evidence.signals_that_exclude, help_text="Kinds of signals from this track's answers that exclude a worker by themselves")),
                ('timed', models.BooleanField(default=True, help_text='Whether answers that come too fast are noted: programs need no time')),
                ('track', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='policy', to='tracks.track')),
            ],
            options={
                'db_table_comment': "How a track's answers are checked and added up",
            },
        ),
        migrations.CreateModel(
            name='Question',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(db_index=True, max_length=16)),
                ('status_since', models.DateTimeField(default=kbpo.clock.now)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('next_try_at', models.DateTimeField(default=kbpo.clock.now)),
                ('reason', models.TextField(blank=True, default='', help_text='Why it waits or was given up, for its owner')),
                ('interface', models.CharField(max_length=32)),
                ('round', models.PositiveSmallIntegerField(default=1, help_text='Asked again for what was not shown before')),
                ('shown', models.JSONField(default=list, help_text='What is shown: for pairs the directed predicates')),
                ('payload', models.JSONField(default=dict, help_text='All that the page needs; never who claimed what')),
                ('payer_kind', models.CharField(choices=[('submission', 'submission'), ('pilot', 'pilot'), ('documents', 'documents'), ('sweep', 'sweep'), ('gold', 'gold'), ('tutorial', 'tutorial'), ('bonus', 'bonus'), ('experts', 'experts')], help_text='What pays for it …', max_length=12)),
                ('payer_number', models.PositiveBigIntegerField(help_text='… and the number of that')),
                ('order', models.FloatField(help_text='u/π: questions go out in this order, not in order of arrival')),
                ('answers_wanted', models.PositiveSmallIntegerField(default=3)),
                ('price', models.DecimalField(decimal_places=2, help_text='For one answer at most, with fees', max_digits=8)),
                ('reward', models.DecimalField(decimal_places=2, help_text='What one worker gets', max_digits=8)),
                ('extra', models.DecimalField(decimal_places=2, default=Decimal('0.00'), help_text='What one worker gets besides, for an answer that took more work', max_digits=8)),
                ('extra_price', models.DecimalField(decimal_places=2, default=Decimal('0.00'), help_text='The part of the price that is due only with the extra', max_digits=8)),
                ('seconds', models.PositiveIntegerField(default=20, help_text='Expected seconds for one answer')),
                ('asked_at', models.DateTimeField(default=kbpo.clock.now)),
                ('asked_again', models.BooleanField(default=False, help_text='Published once more, since answers to it were excluded')),
                ('ended_by', models.CharField(blank=True, choices=[('stop', 'Stop'), ('take_down', 'Take Down')], help_text='Which click of an admin gave it up; empty if none did', max_length=10)),
                ('target', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='questions', to='instances.target')),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='questions', to='tracks.track')),
            ],
            options={
                'db_table_comment': 'Questions about targets',
            },
        ),
        migrations.AddField(
            model_name='hit',
            name='questions',
            field=models.ManyToManyField(related_name='hits', to='annotation.question'),
        ),
        migrations.CreateModel(
            name='Gold',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('expected', models.JSONField(help_text='The right answer, parsed: criterion, target and value of each judgment')),
                ('why', models.TextField(blank=True, help_text='Why it is right')),
                ('made_at', models.DateTimeField(default=kbpo.clock.now)),
                ('retired_at', models.DateTimeField(null=True)),
                ('made_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('question', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='gold', to='annotation.question')),
                ('source', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='gold_made', to='annotation.question')),
            ],
            options={
                'db_table_comment': 'Gold questions: their right answers, never shown to workers',
            },
        ),
        migrations.CreateModel(
            name='Adjudication',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('dispute', 'disputed'), ('disagreement', 'people were divided'), ('random', 'drawn at random')], max_length=12)),
                ('status', models.CharField(choices=[('open', 'Open'), ('answered', 'Answered'), ('dropped', 'Dropped')], default='open', max_length=10)),
                ('probability', models.FloatField(help_text='With which it was drawn; only for random ones', null=True)),
                ('seed', models.BigIntegerField(help_text='Of the draw', null=True)),
                ('order', models.FloatField(help_text='Random place in the queue, so that the order does not tell the kind')),
                ('note', models.TextField(blank=True, help_text='What the researcher says; the expert reads it afterwards')),
                ('raised_at', models.DateTimeField(default=kbpo.clock.now)),
                ('held_until', models.DateTimeField(help_text='Until then nobody but its holder is asked it', null=True)),
                ('draft', models.JSONField(help_text="Its holder's answer so far", null=True)),
                ('raw', models.JSONField(help_text="The expert's answer as sent", null=True)),
                ('answer', models.JSONField(help_text="The expert's answer, parsed and added up: one value a target", null=True)),
                ('agrees', models.BooleanField(help_text='Whether the expert says what the label said', null=True)),
                ('remark', models.TextField(blank=True, help_text='What the expert wrote after seeing the votes')),
                ('answered_at', models.DateTimeField(null=True)),
                ('expert', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('holder', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('raised_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('submission', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='submissions.submission')),
                ('target', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='adjudications', to='instances.target')),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='adjudications', to='tracks.track')),
                ('question', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='adjudications', to='annotation.question')),
            ],
            options={
                'db_table_comment': 'Judgments that experts are asked about, blind, with the trail',
            },
        ),
        migrations.CreateModel(
            name='Rejection',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('evidence', models.TextField(help_text='What was wrong with the answer; its worker reads it')),
                ('was', models.CharField(help_text='Status of the assignment before', max_length=16)),
                ('made_at', models.DateTimeField(default=kbpo.clock.now)),
                ('undone_at', models.DateTimeField(null=True)),
                ('assignment', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='rejections', to='annotation.assignment')),
                ('undone_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('who', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table_comment': 'Refusals of pay, with evidence',
            },
        ),
        migrations.CreateModel(
            name='Response',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('criterion', models.CharField(help_text='relation, linking, flag …', max_length=24)),
                ('value', models.JSONField()),
                ('excluded_reason', models.TextField(blank=True, help_text='Why it does not count, if it does not')),
                ('met_before', models.BooleanField(default=False, help_text='Its worker had judged the target before: it never counts')),
                ('created_at', models.DateTimeField(default=kbpo.clock.now)),
                ('assignment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='responses', to='annotation.assignment')),
                ('question', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='responses', to='annotation.question')),
                ('target', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='responses', to='instances.target')),
            ],
            options={
                'db_table_comment': 'Parsed judgments of single workers',
            },
        ),
        migrations.CreateModel(
            name='Title',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('title', models.TextField()),
                ('folded', models.TextField(help_text='The title in lower case without accents: what is typed is looked up in it')),
            ],
            options={
                'db_table_comment': 'Titles that are suggested for links',
                'indexes': [models.Index(fields=['folded'], name='title_by_beginning', opclasses=['text_pattern_ops'])],
            },
        ),
        migrations.CreateModel(
            name='Worker',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('platform', models.CharField(max_length=16)),
                ('handle', models.CharField(help_text="HMAC of the platform's worker id", max_length=32, unique=True)),
                ('excluded_at', models.DateTimeField(null=True)),
                ('excluded_reason', models.TextField(blank=True)),
                ('reinstated_at', models.DateTimeField(help_text='What was noted before does not exclude again', null=True)),
                ('created_at', models.DateTimeField(default=kbpo.clock.now)),
                ('last_seen_at', models.DateTimeField(null=True)),
                ('wants', models.CharField(blank=True, help_text='The kind of question they chose; empty for any', max_length=32)),
                ('goal', models.PositiveIntegerField(default=0, help_text='How many answers a day their set goes up to; it does not move')),
                ('goal_day', models.DateField(help_text='The day of that goal, UTC', null=True)),
                ('keys', models.JSONField(default=dict, help_text='Single-key shortcuts: whether they are off, and which are changed')),
                ('user', models.OneToOneField(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='worker', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table_comment': 'Annotators, pseudonymous',
            },
        ),
        migrations.CreateModel(
            name='Warned',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(help_text='Of the signals: majority, gold …', max_length=24)),
                ('against', models.PositiveIntegerField(help_text='How many answers it was about')),
                ('at', models.DateTimeField(default=kbpo.clock.now)),
                ('worker', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='warnings', to='annotation.worker')),
            ],
            options={
                'db_table_comment': 'Warnings before an exclusion by signals',
            },
        ),
        migrations.CreateModel(
            name='Signal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(help_text='too_fast …', max_length=24)),
                ('detail', models.TextField(blank=True)),
                ('reviewed', models.BooleanField(default=False, help_text='Its worker was looked at since, and may stay')),
                ('created_at', models.DateTimeField(default=kbpo.clock.now)),
                ('assignment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='signals', to='annotation.assignment')),
                ('worker', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='signals', to='annotation.worker')),
            ],
            options={
                'db_table_comment': 'Signals of doubtful quality',
            },
        ),
        migrations.CreateModel(
            name='Qualification',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text='excluded, tutorial', max_length=32)),
                ('wanted', models.BooleanField()),
                ('wanted_at', models.DateTimeField(default=kbpo.clock.now, help_text='Since when it is wanted so')),
                ('told', models.BooleanField(null=True)),
                ('told_at', models.DateTimeField(null=True)),
                ('refusals', models.PositiveSmallIntegerField(default=0, help_text='Since it was last told')),
                ('next_try_at', models.DateTimeField(default=kbpo.clock.now)),
                ('reason', models.TextField(blank=True, help_text='What the platform said when it refused')),
                ('worker', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='qualifications', to='annotation.worker')),
            ],
            options={
                'db_table_comment': 'Qualifications of platform workers, wanted and told',
            },
        ),
        migrations.CreateModel(
            name='Payment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(db_index=True, max_length=16)),
                ('status_since', models.DateTimeField(default=kbpo.clock.now)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('next_try_at', models.DateTimeField(default=kbpo.clock.now)),
                ('reason', models.TextField(blank=True, default='', help_text='Why it waits or was given up, for its owner')),
                ('amount', models.DecimalField(decimal_places=2, max_digits=8)),
                ('token', models.CharField(default=secrets.token_hex, max_length=64, unique=True)),
                ('why', models.CharField(blank=True, help_text='What for, if not for an assignment', max_length=120)),
                ('endpoint', models.CharField(blank=True, help_text='Where its platform pays it: that of its HIT', max_length=200)),
                ('created_at', models.DateTimeField(default=kbpo.clock.now)),
                ('assignment', models.OneToOneField(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='payment', to='annotation.assignment')),
                ('worker', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='payments', to='annotation.worker')),
            ],
            options={
                'db_table_comment': 'What annotators are owed and were paid',
            },
        ),
        migrations.CreateModel(
            name='Bonus',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(db_index=True, max_length=16)),
                ('status_since', models.DateTimeField(default=kbpo.clock.now)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('next_try_at', models.DateTimeField(default=kbpo.clock.now)),
                ('reason', models.TextField(blank=True, default='', help_text='Why it waits or was given up, for its owner')),
                ('payer_kind', models.CharField(help_text='Whose reservation it is spent from, under its token, where an answer earned it; none: one of its own', max_length=12, null=True)),
                ('payer_number', models.PositiveBigIntegerField(null=True)),
                ('amount', models.DecimalField(decimal_places=2, max_digits=8)),
                ('fee', models.DecimalField(decimal_places=2, max_digits=8)),
                ('why', models.TextField(help_text='Its worker reads it')),
                ('token', models.CharField(default=secrets.token_hex, max_length=64, unique=True)),
                ('external_id', models.CharField(blank=True, help_text='The HIT of a compensation', max_length=120)),
                ('endpoint', models.CharField(blank=True, help_text='Where it is paid: where its worker works', max_length=200)),
                ('offers', models.PositiveSmallIntegerField(default=1, help_text='The HITs of a compensation, one after the other: a new one once the last was deleted')),
                ('offered_at', models.DateTimeField(help_text='When the HIT of a compensation was made', null=True)),
                ('cleared_at', models.DateTimeField(help_text='When that HIT was deleted, and its qualification', null=True)),
                ('created_at', models.DateTimeField(default=kbpo.clock.now)),
                ('assignment', models.ForeignKey(help_text='The work that it is for; without one it is a compensation, paid through a HIT of its own', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='bonuses', to='annotation.assignment')),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='bonuses', to='tracks.track')),
                ('who', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('worker', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='bonuses', to='annotation.worker')),
            ],
            options={
                'db_table_comment': 'Bonuses and compensations on platforms',
            },
        ),
        migrations.AddField(
            model_name='assignment',
            name='worker',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='assignments', to='annotation.worker'),
        ),
        migrations.CreateModel(
            name='WorkerIdentity',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('external_id', models.CharField(max_length=120)),
                ('worker', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='identity', to='annotation.worker')),
            ],
            options={
                'db_table_comment': 'Personal data: platform worker ids',
            },
        ),
        migrations.CreateModel(
            name='Comparison',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('majority', 'Majority'), ('gold', 'Gold'), ('unread', 'Unread'), ('short_edit', 'Short Edit')], max_length=12)),
                ('against', models.BooleanField(help_text='Whether the answer says otherwise')),
                ('created_at', models.DateTimeField(default=kbpo.clock.now)),
                ('assignment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='comparisons', to='annotation.assignment')),
            ],
            options={
                'db_table_comment': "Answers held against the others' majority, gold, or the time that reading takes",
                'constraints': [models.UniqueConstraint(fields=('assignment', 'kind'), name='comparison_once')],
            },
        ),
        migrations.AddConstraint(
            model_name='documentorder',
            constraint=models.CheckConstraint(condition=models.Q(('fee_rate__gte', 0), ('per_pair__gt', 0), ('per_token__gt', 0)), name='document_order_costs'),
        ),
        migrations.AddConstraint(
            model_name='halt',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('payer_kind', None), ('payer_number', None)), models.Q(('payer_kind__in', ('submission', 'pilot', 'documents', 'sweep', 'gold', 'tutorial', 'bonus', 'experts')), ('payer_number__isnull', False)), _connector='OR'), name='halt_payer_is_whole'),
        ),
        migrations.AddConstraint(
            model_name='pilot',
            constraint=models.CheckConstraint(condition=models.Q(('items__gte', 1), ('workers__gte', 2)), name='pilot_compares_people'),
        ),
        migrations.AddConstraint(
            model_name='policy',
            constraint=models.CheckConstraint(condition=models.Q(('gold_rate__gte', 0), ('gold_rate__lte', 0.5)), name='gold_rate_at_most_half'),
        ),
        migrations.AddIndex(
            model_name='question',
            index=models.Index(fields=['status', 'order'], name='annotation__status_11541b_idx'),
        ),
        migrations.AddIndex(
            model_name='question',
            index=models.Index(fields=['status', 'next_try_at'], name='annotation__status_ca4b14_idx'),
        ),
        migrations.AddIndex(
            model_name='question',
            index=models.Index(fields=['payer_kind', 'payer_number', 'status'], name='question_by_payer'),
        ),
        migrations.AddConstraint(
            model_name='question',
            constraint=models.UniqueConstraint(fields=('track', 'target', 'interface', 'round'), name='question_once_a_round'),
        ),
        migrations.AddConstraint(
            model_name='question',
            constraint=models.CheckConstraint(condition=models.Q(('payer_kind__in', ('submission', 'pilot', 'documents', 'sweep', 'gold', 'tutorial', 'bonus', 'experts'))), name='question_payer_is_one'),
        ),
        migrations.AddIndex(
            model_name='hit',
            index=models.Index(fields=['platform', 'status', 'order'], name='annotation__platfor_4250a4_idx'),
        ),
        migrations.AddIndex(
            model_name='adjudication',
            index=models.Index(fields=['status', 'order'], name='annotation__status_c2d08c_idx'),
        ),
        migrations.AddConstraint(
            model_name='adjudication',
            constraint=models.UniqueConstraint(condition=models.Q(('status', 'open')), fields=('track', 'target', 'kind'), name='adjudication_open_once'),
        ),
        migrations.AddConstraint(
            model_name='adjudication',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('kind', 'random'), ('probability__gt', 0), ('probability__lte', 1)), models.Q(models.Q(('kind', 'random'), _negated=True), ('probability__isnull', True)), _connector='OR'), name='adjudication_random_has_probability'),
        ),
        migrations.AddConstraint(
            model_name='adjudication',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status', 'answered'), _negated=True), models.Q(('answered_at__isnull', False), ('raw__isnull', False)), _connector='OR'), name='adjudication_answered_has_answer'),
        ),
        migrations.AddConstraint(
            model_name='rejection',
            constraint=models.UniqueConstraint(condition=models.Q(('undone_at__isnull', True)), fields=('assignment',), name='rejection_once_at_a_time'),
        ),
        migrations.AddConstraint(
            model_name='response',
            constraint=models.UniqueConstraint(fields=('assignment', 'question', 'target', 'criterion'), name='response_once_a_question'),
        ),
        migrations.AddIndex(
            model_name='warned',
            index=models.Index(fields=['worker', 'kind', 'at'], name='annotation__worker__61aece_idx'),
        ),
        migrations.AddIndex(
            model_name='signal',
            index=models.Index(condition=models.Q(('reviewed', False)), fields=['worker'], name='signal_unreviewed'),
        ),
        migrations.AddConstraint(
            model_name='signal',
            constraint=models.UniqueConstraint(fields=('assignment', 'kind'), name='signal_once'),
        ),
        migrations.AddConstraint(
            model_name='qualification',
            constraint=models.UniqueConstraint(fields=('worker', 'name'), name='qualification_once'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(('amount__gt', 0)), name='payment_positive'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(('assignment__isnull', False), models.Q(('why', ''), _negated=True), _connector='OR'), name='payment_for_something'),
        ),
        migrations.AddConstraint(
            model_name='bonus',
            constraint=models.CheckConstraint(condition=models.Q(('amount__gt', 0)), name='bonus_positive'),
        ),
        migrations.AddConstraint(
            model_name='bonus',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('payer_kind', None), ('payer_number', None)), models.Q(('payer_kind__in', ('submission', 'pilot', 'documents', 'sweep', 'gold', 'tutorial', 'bonus', 'experts')), ('payer_number__isnull', False)), _connector='OR'), name='bonus_payer_is_whole'),
        ),
        migrations.AddIndex(
            model_name='assignment',
            index=models.Index(fields=['status', 'leased_until'], name='annotation__status_2be70f_idx'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.UniqueConstraint(condition=models.Q(('status', 'returned'), _negated=True), fields=('hit', 'worker'), name='assignment_once_a_worker'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.UniqueConstraint(condition=models.Q(('external_id', ''), _negated=True), fields=('hit', 'external_id', 'worker'), name='assignment_once_a_platform'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['leased', 'returned']), ('raw__isnull', False), _connector='OR'), name='submitted_has_raw_answer'),
        ),
    ]
