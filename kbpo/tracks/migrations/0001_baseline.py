import django.core.validators
import django.db.models.deletion
import kbpo.clock
from decimal import Decimal
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [
        ("tracks", "0001_initial"),
        ("tracks", "0002_announce_tracks"),
        ("tracks", "0003_guarantees_as_the_kind_says"),
        ("tracks", "0004_ends_when_ranked"),
        ("tracks", "0002_record_presentations"),
    ]
    initial = True

    dependencies = [
        ('corpus', '0001_baseline'),
    ]

    operations = [
        migrations.CreateModel(
            name='Track',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=120, unique=True)),
                ('slug', models.SlugField(max_length=120, unique=True)),
                ('kind', models.CharField(default='kbp', help_text='Name in the registry of kinds (kbpo/tracks/registry.py)', max_length=24)),
                ('description', models.TextField(blank=True)),
                ('status', models.CharField(choices=[('draft', 'Draft'), ('open', 'Open'), ('frozen', 'Frozen'), ('closed', 'Closed')], default='draft', max_length=8)),
                ('distribution', models.CharField(help_text='Guaranteed distribution', max_length=24)),
                ('criterion', models.CharField(help_text='Guaranteed criterion', max_length=24)),
                ('distributions', models.JSONField(default=list, help_text='Distributions that are shown')),
                ('target_half_width', models.DecimalField(decimal_places=3, default=Decimal('0.030'), max_digits=4, validators=[django.core.validators.MinValueValidator(Decimal('0.005')), django.core.validators.MaxValueValidator(Decimal('0.200'))])),
                ('confidence_level', models.DecimalField(decimal_places=2, default=Decimal('0.80'), max_digits=3)),
                ('design', models.CharField(choices=[('poisson', 'each relation at most once, with a chance of its own'), ('iid', 'draws with replacement, as published')], default='poisson', max_length=8)),
                ('other_share', models.DecimalField(decimal_places=2, default=Decimal('0.25'), help_text="Design iid: draws of each other distribution, as a share of the guaranteed one's", max_digits=3)),
                ('ends_when_ranked', models.BooleanField(default=False, help_text='A run is judged no further once its rank among all runs is decided')),
                ('scope', models.CharField(choices=[('sentence', 'Sentence'), ('neighbours', 'Neighbours'), ('document', 'Document')], default='sentence', max_length=12)),
                ('workers_per_question', models.PositiveSmallIntegerField()),
                ('presentation', models.JSONField(blank=True, default=dict, help_text='What is done to outputs before anybody or any metric sees them (formats/presentation.py); empty: nothing')),
                ('platform', models.CharField(default='pool', max_length=16)),
                ('closes_on', models.DateField(blank=True, help_text='The last day on which runs are taken, as announced', null=True)),
                ('rules', models.TextField(blank=True, help_text='What runs must keep to, a sentence a line')),
                ('who_pays', models.CharField(blank=True, help_text='Who pays for judgments, in a sentence', max_length=200)),
                ('runs_a_week', models.PositiveSmallIntegerField(blank=True, help_text='Runs that a team may confirm in seven days', null=True)),
                ('runs_in_all', models.PositiveSmallIntegerField(blank=True, help_text='Runs that a team may confirm in all', null=True)),
                ('created_at', models.DateTimeField(default=kbpo.clock.now)),
                ('opened_at', models.DateTimeField(null=True)),
                ('closed_at', models.DateTimeField(null=True)),
                ('corpus', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='tracks', to='corpus.corpus')),
            ],
            options={
                'db_table_comment': 'Tracks: one kind of evaluation on one corpus',
            },
        ),
    ]
