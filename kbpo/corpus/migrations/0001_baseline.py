import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.functions.text
import kbpo.clock
import kbpo.corpus.models
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [
        ("corpus", "0001_initial"),
        ("corpus", "0002_describe_corpora"),
        ("corpus", "0003_upload_corpora"),
        ("corpus", "0004_name_uploads"),
        ("corpus", "0005_search_documents"),
        ("corpus", "0002_upload_inputs_and_mentions"),
    ]
    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Corpus',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=120, unique=True)),
                ('slug', models.SlugField(max_length=120, unique=True)),
                ('schema', models.JSONField(help_text='Entity types and predicates, as in the schema file')),
                ('description', models.TextField(blank=True, help_text='What the texts are and where from')),
                ('licence', models.CharField(blank=True, help_text='Under which the texts may be used', max_length=200)),
                ('may_be_downloaded', models.BooleanField(default=True, help_text='Whether everybody may download the documents')),
                ('digest', models.CharField(blank=True, help_text='SHA-256 of the file that was loaded', max_length=64)),
                ('n_documents', models.PositiveIntegerField(default=0)),
                ('hash_key', models.CharField(default=kbpo.corpus.models.new_key, max_length=64)),
                ('loaded_at', models.DateTimeField(default=kbpo.clock.now)),
            ],
            options={
                'verbose_name_plural': 'corpora',
                'db_table_comment': 'Corpora: a set of documents with one schema',
            },
        ),
        migrations.CreateModel(
            name='CorpusUpload',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(db_index=True, max_length=16)),
                ('status_since', models.DateTimeField(default=kbpo.clock.now)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('next_try_at', models.DateTimeField(default=kbpo.clock.now)),
                ('reason', models.TextField(blank=True, default='', help_text='Why it waits or was given up, for its owner')),
                ('found', models.JSONField(default=dict, help_text='What a trial counted')),
                ('made_at', models.DateTimeField(default=kbpo.clock.now)),
                ('what', models.CharField(choices=[('documents', 'documents, in which systems find relations'), ('inputs', 'inputs, for which systems write texts')], default='documents', max_length=9)),
                ('name', models.CharField(max_length=120)),
                ('file', models.FileField(max_length=300, upload_to='corpora/%Y/%m/')),
                ('file_name', models.CharField(help_text='As it was called where it came from', max_length=255)),
                ('schema', models.CharField(blank=True, help_text='A schema that ships with us', max_length=80)),
                ('schema_file', models.FileField(blank=True, max_length=300, upload_to='corpora/%Y/%m/')),
                ('schema_name', models.CharField(blank=True, max_length=255)),
                ('mentions', models.FileField(blank=True, max_length=300, upload_to='corpora/%Y/%m/')),
                ('mentions_name', models.CharField(blank=True, max_length=255)),
                ('corpus', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='corpus.corpus')),
            ],
            options={
                'db_table_comment': 'Corpora that admins uploaded, and what became of them',
            },
        ),
        migrations.CreateModel(
            name='Document',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(help_text='The id in the corpus file', max_length=200)),
                ('title', models.TextField(blank=True)),
                ('date', models.CharField(blank=True, max_length=40)),
                ('text', models.TextField()),
                ('token_begin', django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None)),
                ('token_end', django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None)),
                ('sentence_begin', django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None)),
                ('sentence_end', django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None)),
                ('corpus', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='documents', to='corpus.corpus')),
            ],
            options={
                'db_table_comment': 'Documents with token and sentence offsets',
                'indexes': [django.contrib.postgres.indexes.GinIndex(django.contrib.postgres.search.SearchVector('title', django.db.models.functions.text.Left('text', 250000), config='simple'), name='document_words')],
                'constraints': [models.UniqueConstraint(fields=('corpus', 'key'), name='document_once_a_corpus')],
            },
        ),
        migrations.CreateModel(
            name='Mention',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('begin', models.IntegerField()),
                ('end', models.IntegerField()),
                ('type', models.CharField(max_length=40)),
                ('canonical_begin', models.IntegerField(null=True)),
                ('canonical_end', models.IntegerField(null=True)),
                ('link', models.TextField(blank=True)),
                ('document', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='mentions', to='corpus.document')),
            ],
            options={
                'db_table_comment': 'Mentions that came with the corpus',
                'constraints': [models.UniqueConstraint(fields=('document', 'begin', 'end'), name='mention_once_a_document')],
            },
        ),
        migrations.CreateModel(
            name='Predicate',
            fields=[
                ('id', models.AutoField(primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=120)),
                ('position', models.PositiveSmallIntegerField(help_text='Order in the schema: frequent ones first')),
                ('corpus', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='predicates', to='corpus.corpus')),
            ],
            options={
                'db_table_comment': "Predicates of a corpus's schema",
                'constraints': [models.UniqueConstraint(fields=('corpus', 'name'), name='predicate_once_a_corpus')],
            },
        ),
    ]
