import django.db.models.deletion
import kbpo.clock
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [
        ("generation", "0001_inputs_of_systems_that_write"),
        ("generation", "0002_declare_forms_and_compare_pairs"),
        ("generation", "0002_inputs_stay_where_they_are"),
        ("generation", "0003_keep_prompts_and_splits"),
    ]
    initial = True

    dependencies = [
        ('corpus', '0001_baseline'),
        ('submissions', '0001_baseline'),
    ]

    operations = [
        migrations.CreateModel(
            name='DeclaredForm',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=19, unique=True)),
                ('title', models.CharField(max_length=120)),
                ('text', models.TextField(help_text='The YAML, as it was read (formats/forms.py)')),
                ('made_at', models.DateTimeField(default=kbpo.clock.now)),
            ],
            options={
                'db_table_comment': 'Declared forms: interfaces without code',
            },
        ),
        migrations.CreateModel(
            name='Input',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(help_text='The id in the file of inputs', max_length=200)),
                ('source', models.TextField(blank=True)),
                ('question', models.TextField(blank=True)),
                ('passages', models.JSONField(default=list)),
                ('references', models.JSONField(default=list)),
                ('prompt', models.TextField(blank=True, help_text='Which instruction the systems were given')),
                ('split', models.TextField(blank=True, help_text='Which part of a data set it is from')),
                ('corpus', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='inputs', to='corpus.corpus')),
            ],
            options={
                'db_table_comment': 'Inputs of systems that write',
                'constraints': [models.UniqueConstraint(fields=('corpus', 'key'), name='input_once_a_corpus')],
            },
        ),
        migrations.CreateModel(
            name='Written',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(help_text="The input's id", max_length=200)),
                ('text', models.TextField()),
                ('line', models.PositiveIntegerField()),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='written', to='submissions.submission')),
            ],
            options={
                'db_table_comment': 'Outputs of systems that are compared two by two',
                'constraints': [models.UniqueConstraint(fields=('submission', 'key'), name='written_once_an_input')],
            },
        ),
    ]
