import annotation.workers.models
import django.db.models.deletion
import kbpo.clock
from decimal import Decimal
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [
        ("annotators", "0001_initial"),
        ("annotators", "0002_payout_addresses"),
        ("annotators", "0003_attempts_by_assignment"),
        ("annotators", "0004_write_when_there_is_work"),
        ("annotators", "0005_promises_are_keys"),
        ("annotators", "0006_reinstate"),
        ("annotators", "0002_agree_for_the_assignment_in_hand"),
        ("annotators", "0003_note_from_where_volunteers_come"),
    ]
    initial = True

    dependencies = [
        ('accounts', '__first__'),
        ('annotation', '0001_baseline'),
        ('tracks', '0001_baseline'),
    ]

    operations = [
        migrations.CreateModel(
            name='Application',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('network', models.CharField(blank=True, db_default='', default='', help_text='From where it was asked, while it waits', max_length=64)),
                ('why', models.TextField(blank=True)),
                ('made_at', models.DateTimeField(default=kbpo.clock.now)),
                ('admitted', models.BooleanField(null=True)),
                ('answered_at', models.DateTimeField(null=True)),
                ('answered_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='application', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table_comment': 'The queue of volunteers',
            },
        ),
        migrations.CreateModel(
            name='Feedback',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('interface', models.CharField(max_length=32)),
                ('clear', models.BooleanField(help_text='The instructions are clear')),
                ('fair', models.BooleanField(help_text='The pay is fair')),
                ('comment', models.TextField(blank=True)),
                ('at', models.DateTimeField(default=kbpo.clock.now)),
                ('worker', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='feedback', to='annotation.worker')),
            ],
            options={
                'db_table_comment': 'Feedback of annotators; never public',
            },
        ),
        migrations.CreateModel(
            name='Leaving',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('waives', models.BooleanField(help_text='Gives up what is owed; else it is paid first')),
                ('waived', models.DecimalField(decimal_places=2, default=Decimal('0.00'), max_digits=10)),
                ('asked_at', models.DateTimeField(default=kbpo.clock.now)),
                ('erased_at', models.DateTimeField(null=True)),
                ('worker', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='leaving', to='annotation.worker')),
            ],
            options={
                'db_table_comment': 'Who asked to be erased, and when it was done',
            },
        ),
        migrations.CreateModel(
            name='Message',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('subject', models.CharField(max_length=120)),
                ('text', models.TextField()),
                ('at', models.DateTimeField(default=kbpo.clock.now)),
                ('read_at', models.DateTimeField(null=True)),
                ('tried_at', models.DateTimeField(help_text='When a marketplace was asked to hand it over: at most once', null=True)),
                ('sent_at', models.DateTimeField(help_text='When the marketplace took it', null=True)),
                ('trouble', models.TextField(blank=True, help_text='Why it was not handed over, or may not have been')),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('worker', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='annotation.worker')),
            ],
            options={
                'db_table_comment': 'Messages to annotators',
            },
        ),
        migrations.CreateModel(
            name='Payout',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('amount', models.DecimalField(decimal_places=2, max_digits=10)),
                ('reference', models.CharField(help_text='How it can be found again at the bank', max_length=120)),
                ('sent_to', models.CharField(blank=True, help_text='The end of the address that it went to', max_length=12)),
                ('key', models.CharField(help_text='Of the form: a second click pays nothing', max_length=64, unique=True)),
                ('paid_at', models.DateTimeField(default=kbpo.clock.now)),
                ('number', models.CharField(default=annotation.workers.models._number, help_text='Of the receipt', max_length=16, unique=True)),
                ('paid_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('undoes', models.OneToOneField(help_text='The mark that was a mistake', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='undone_by', to='annotators.payout')),
                ('worker', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='payouts', to='annotation.worker')),
            ],
            options={
                'db_table_comment': 'Payouts to annotators of the pool',
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('amount__gt', 0), ('undoes', None)), models.Q(('amount__lt', 0), ('undoes__isnull', False)), _connector='OR'), name='payout_signed')],
            },
        ),
        migrations.CreateModel(
            name='PayoutAddress',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('address', models.TextField()),
                ('changed_at', models.DateTimeField(default=kbpo.clock.now)),
                ('worker', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='payout_address', to='annotation.worker')),
            ],
            options={
                'db_table_comment': 'Personal data: where annotators are paid',
            },
        ),
        migrations.CreateModel(
            name='PayoutItem',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('undone', models.BooleanField(default=False)),
                ('payment', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='payout_items', to='annotation.payment')),
                ('payout', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='items', to='annotators.payout')),
            ],
            options={
                'db_table_comment': 'Which payments a payout settled',
                'constraints': [models.UniqueConstraint(condition=models.Q(('undone', False)), fields=('payment',), name='payout_item_once')],
            },
        ),
        migrations.CreateModel(
            name='Terms',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveIntegerField(unique=True)),
                ('text', models.TextField()),
                ('made_at', models.DateTimeField(default=kbpo.clock.now)),
                ('made_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table_comment': 'Versions of the terms for annotators',
            },
        ),
        migrations.CreateModel(
            name='TutorialRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('interface', models.CharField(max_length=32)),
                ('version', models.PositiveSmallIntegerField()),
                ('attempt', models.PositiveSmallIntegerField()),
                ('assignment', models.CharField(blank=True, default='', help_text="What was in hand in a marketplace's frame; empty on pages of our own", max_length=120)),
                ('answers', models.JSONField(default=list, help_text='For each question: right, what was missed')),
                ('passed', models.BooleanField(help_text='Not known until the last question is answered', null=True)),
                ('started_at', models.DateTimeField(default=kbpo.clock.now)),
                ('ended_at', models.DateTimeField(null=True)),
                ('promised', models.DecimalField(decimal_places=2, default=Decimal('0.00'), max_digits=6)),
                ('promise', models.ForeignKey(help_text='The attempt for which money was reserved; none once a bonus pays it', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='annotators.tutorialrun')),
                ('track', models.ForeignKey(help_text='Who pays what is promised', null=True, on_delete=django.db.models.deletion.PROTECT, to='tracks.track')),
                ('worker', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tutorials', to='annotation.worker')),
            ],
            options={
                'db_table_comment': 'Attempts at tutorials',
                'constraints': [models.UniqueConstraint(fields=('worker', 'interface', 'version', 'assignment', 'attempt'), name='tutorial_attempt_once'), models.CheckConstraint(condition=models.Q(('passed', None), ('ended_at__isnull', False), _connector='OR'), name='tutorial_result_at_end'), models.CheckConstraint(condition=models.Q(('promised', 0), ('track__isnull', False), _connector='OR'), name='tutorial_promise_has_payer')],
            },
        ),
        migrations.CreateModel(
            name='WorkMail',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('asked_at', models.DateTimeField(default=kbpo.clock.now)),
                ('mailed_at', models.DateTimeField(null=True)),
                ('worker', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='work_mail', to='annotation.worker')),
            ],
            options={
                'db_table_comment': 'Who is written to when there is work',
            },
        ),
        migrations.CreateModel(
            name='Appeal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('about_pay', models.BooleanField(default=False, help_text='Against refused pay, and not against being excluded')),
                ('excluded_reason', models.TextField(help_text='What was appealed against, as it stood then')),
                ('text', models.TextField()),
                ('made_at', models.DateTimeField(default=kbpo.clock.now)),
                ('answer', models.TextField(blank=True)),
                ('reinstated', models.BooleanField(null=True)),
                ('answered_at', models.DateTimeField(null=True)),
                ('answered_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('worker', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='appeals', to='annotation.worker')),
            ],
            options={
                'db_table_comment': 'Appeals against exclusions',
                'constraints': [models.UniqueConstraint(condition=models.Q(('answered_at', None)), fields=('worker',), name='appeal_one_open'), models.CheckConstraint(condition=models.Q(('answered_at', None), models.Q(('answer', ''), _negated=True), _connector='OR'), name='appeal_answered_in_words')],
            },
        ),
        migrations.CreateModel(
            name='Consent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveIntegerField()),
                ('assignment', models.CharField(blank=True, default='', help_text="What was in hand in a marketplace's frame; empty on pages of our own", max_length=120)),
                ('at', models.DateTimeField(default=kbpo.clock.now)),
                ('worker', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='consents', to='annotation.worker')),
            ],
            options={
                'db_table_comment': 'Who agreed to which version of the terms',
                'constraints': [models.UniqueConstraint(fields=('worker', 'version', 'assignment'), name='consent_once')],
            },
        ),
        migrations.CreateModel(
            name='Intake',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('volunteers', models.CharField(choices=[('closed', 'Closed'), ('queue', 'Queue'), ('open', 'Open')], default='closed', max_length=8)),
                ('tutorial_reward', models.DecimalField(decimal_places=2, default=Decimal('0.75'), help_text="For passing an interface's tutorial, once", max_digits=6)),
                ('payout_minimum', models.DecimalField(decimal_places=2, default=Decimal('5.00'), max_digits=8)),
                ('payout_day', models.PositiveSmallIntegerField(default=1, help_text='Day of the month on which payouts are made')),
                ('payout_ways', models.CharField(blank=True, help_text='How money can be sent, in words for annotators', max_length=300)),
                ('track', models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='intake', to='tracks.track')),
            ],
            options={
                'db_table_comment': 'How the service and its tracks take annotators in',
                'constraints': [models.UniqueConstraint(fields=('track',), name='intake_one_of_the_service', nulls_distinct=False), models.CheckConstraint(condition=models.Q(('payout_minimum__gte', 0), ('tutorial_reward__gte', 0)), name='intake_amounts'), models.CheckConstraint(condition=models.Q(('payout_day__gte', 1), ('payout_day__lte', 31)), name='intake_payout_day')],
            },
        ),
    ]
