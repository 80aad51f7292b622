import django.db.models.deletion
import kbpo.clock
from decimal import Decimal
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [
        ("money", "0001_initial"),
        ("money", "0002_close_reservations"),
        ("money", "0003_pay_more_for_more_work"),
        ("money", "0004_purposes_are_columns"),
        ("money", "0002_pay_answers_that_came_too_late"),
        ("money", "0003_call_sweeps_follow_ups"),
    ]
    initial = True

    dependencies = [
        ('accounts', '0001_baseline'),
        ('accounts', '__first__'),
        ('tracks', '0001_baseline'),
    ]

    operations = [
        migrations.CreateModel(
            name='BooksCheck',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('asked_at', models.DateTimeField(default=kbpo.clock.now)),
                ('finished_at', models.DateTimeField(db_index=True, null=True)),
                ('seconds', models.FloatField(help_text='How long it took', null=True)),
                ('findings', models.JSONField(default=list, help_text='Each the name of a check and a sentence: where books disagree')),
                ('trouble', models.TextField(blank=True, help_text='Why the books could not be read')),
                ('who', models.ForeignKey(help_text='None: the clock', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table_comment': 'When our books were held against each other, and what disagreed',
                'constraints': [models.UniqueConstraint(condition=models.Q(('finished_at__isnull', True)), fields=('finished_at',), name='books_check_queued_once', nulls_distinct=False)],
            },
        ),
        migrations.CreateModel(
            name='Budget',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('scope', models.CharField(choices=[('track', 'Track'), ('day', 'Day'), ('submission', 'Submission'), ('team', 'Team')], max_length=12)),
                ('cap', models.DecimalField(decimal_places=2, max_digits=12)),
                ('team', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, to='accounts.team')),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='budgets', to='tracks.track')),
            ],
            options={
                'db_table_comment': 'Caps on spending',
                'constraints': [models.UniqueConstraint(fields=('track', 'scope', 'team'), name='budget_once', nulls_distinct=False), models.CheckConstraint(condition=models.Q(('cap__gte', 0)), name='budget_not_negative')],
            },
        ),
        migrations.CreateModel(
            name='Ledger',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('purpose_kind', models.CharField(choices=[('submission', 'submission'), ('pilot', 'pilot'), ('documents', 'documents'), ('follow_up', 'follow_up'), ('gold', 'gold'), ('tutorial', 'tutorial'), ('bonus', 'bonus'), ('experts', 'experts'), ('late', 'late')], help_text='What it is for …', max_length=12)),
                ('purpose_number', models.PositiveBigIntegerField(help_text='… and the number of that')),
                ('kind', models.CharField(choices=[('reserve', 'Reserve'), ('release', 'Release'), ('spend', 'Spend')], max_length=8)),
                ('amount', models.DecimalField(decimal_places=2, max_digits=12)),
                ('state', models.CharField(choices=[('intent', 'Intent'), ('sent', 'Sent'), ('confirmed', 'Confirmed'), ('failed', 'Failed'), ('unknown', 'Unknown')], default='confirmed', max_length=10)),
                ('key', models.CharField(help_text='Idempotency key', max_length=64, unique=True)),
                ('why', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(default=kbpo.clock.now)),
                ('closed_at', models.DateTimeField(help_text='Of a reservation: since when its purpose has ended, and nothing of it is open', null=True)),
                ('team', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='ledger', to='accounts.team')),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='ledger', to='tracks.track')),
                ('who', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table_comment': 'Every movement of money',
                'indexes': [models.Index(fields=['purpose_kind', 'purpose_number'], name='ledger_by_purpose'), models.Index(fields=['track', 'kind', 'created_at'], name='money_ledge_track_i_6bf099_idx'), models.Index(condition=models.Q(('closed_at', None), ('kind', 'reserve')), fields=['purpose_kind', 'purpose_number'], name='ledger_open_reservations')],
                'constraints': [models.CheckConstraint(condition=models.Q(('amount__gte', 0)), name='ledger_not_negative'), models.CheckConstraint(condition=models.Q(('purpose_kind__in', ('submission', 'pilot', 'documents', 'follow_up', 'gold', 'tutorial', 'bonus', 'experts', 'late'))), name='ledger_purpose_is_one')],
            },
        ),
        migrations.CreateModel(
            name='Price',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('interface', models.CharField(max_length=32)),
                ('reward', models.DecimalField(decimal_places=2, help_text='Dollars for one answer of one worker', max_digits=8)),
                ('extra', models.DecimalField(decimal_places=2, default=Decimal('0.00'), help_text='Dollars besides, for an answer that took more work', max_digits=8)),
                ('fee_rate', models.DecimalField(decimal_places=3, default=Decimal('0'), max_digits=4)),
                ('seconds', models.PositiveIntegerField(default=20, help_text='Expected seconds for one answer')),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='prices', to='tracks.track')),
            ],
            options={
                'db_table_comment': 'Price of one answer per track and interface',
                'constraints': [models.UniqueConstraint(fields=('track', 'interface'), name='price_once_an_interface'), models.CheckConstraint(condition=models.Q(('extra__gte', 0), ('reward__gt', 0)), name='price_positive')],
            },
        ),
    ]
