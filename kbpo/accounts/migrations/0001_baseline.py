import django.contrib.auth.models
import django.contrib.auth.validators
import django.db.models.deletion
import django.utils.timezone
import kbpo.clock
import secrets
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [
        ("accounts", "0001_initial"),
        ("accounts", "0002_ask_for_accounts"),
        ("accounts", "0003_own_teams"),
        ("accounts", "0004_tell_people"),
        ("accounts", "0005_news_read"),
        ("accounts", "0006_scopes_of_tokens"),
        ("accounts", "0002_read_news_by_team"),
        ("accounts", "0003_queue_mails_as_calls"),
        ("accounts", "0004_forget_mails_with_what_they_answer"),
        ("accounts", "0005_let_members_only_look"),
        ("accounts", "0006_note_from_where_requests_come"),
    ]
    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        migrations.CreateModel(
            name='User',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('password', models.CharField(max_length=128, verbose_name='password')),
                ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                ('username', models.CharField(error_messages={'unique': 'A user with that username already exists.'}, help_text='Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.', max_length=150, unique=True, validators=[django.contrib.auth.validators.UnicodeUsernameValidator()], verbose_name='username')),
                ('first_name', models.CharField(blank=True, max_length=150, verbose_name='first name')),
                ('last_name', models.CharField(blank=True, max_length=150, verbose_name='last name')),
                ('email', models.EmailField(blank=True, max_length=254, verbose_name='email address')),
                ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
                ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
                ('date_joined', models.DateTimeField(default=django.utils.timezone.now, verbose_name='date joined')),
                ('is_researcher', models.BooleanField(default=False)),
                ('is_annotator', models.BooleanField(default=False)),
                ('is_volunteer', models.BooleanField(default=False, help_text='An annotator whom nobody invited: judges only on tracks that take volunteers')),
                ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
            ],
            options={
                'verbose_name': 'user',
                'verbose_name_plural': 'users',
                'db_table_comment': 'People who log in; roles are flags',
                'abstract': False,
            },
            managers=[
                ('objects', django.contrib.auth.models.UserManager()),
            ],
        ),
        migrations.CreateModel(
            name='Invitation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('code', models.CharField(default=secrets.token_urlsafe, max_length=43, unique=True)),
                ('role', models.CharField(choices=[('annotator', 'annotator'), ('researcher', 'researcher'), ('observer', 'observer')], max_length=16)),
                ('created_at', models.DateTimeField(default=kbpo.clock.now)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('uses_left', models.PositiveIntegerField(default=1)),
                ('made_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table_comment': 'Invitation links for annotators and team members',
            },
        ),
        migrations.CreateModel(
            name='AccountRequest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('network', models.CharField(blank=True, db_default='', default='', help_text='From where it was asked, while it waits', max_length=64)),
                ('name', models.CharField(max_length=120)),
                ('email', models.EmailField(max_length=254)),
                ('affiliation', models.CharField(blank=True, max_length=200)),
                ('team', models.CharField(help_text='Name of the team, a new one or one there is', max_length=80)),
                ('system', models.TextField(blank=True, help_text='What system will be evaluated')),
                ('asked_at', models.DateTimeField(default=kbpo.clock.now)),
                ('decided_at', models.DateTimeField(null=True)),
                ('accepted', models.BooleanField(null=True)),
                ('decided_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('user', models.ForeignKey(help_text='Who asked, once it is known: they were logged in, or used the link', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='requests', to=settings.AUTH_USER_MODEL)),
                ('invitation', models.OneToOneField(null=True, on_delete=django.db.models.deletion.SET_NULL, to='accounts.invitation')),
            ],
            options={
                'db_table_comment': 'Requests for accounts from outside, and what was decided',
                'constraints': [models.UniqueConstraint(condition=models.Q(('decided_at', None)), fields=('email',), name='one_open_request_an_address')],
            },
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('may_only_look', models.BooleanField(db_default=False, default=False, help_text='Sees what the team sees; uploads, spends, changes and invites nothing')),
                ('news_read_at', models.DateTimeField(help_text="Up to when they have read what happened to the team's runs", null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table': 'accounts_team_members',
                'db_table_comment': 'Who belongs to which team',
            },
        ),
        migrations.CreateModel(
            name='Preference',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('event', models.CharField(choices=[('scored', 'A run of your team is scored'), ('refused', 'A file of your team cannot be used, or is given up'), ('expired', 'A draft of your team is put away, because nobody confirmed it'), ('dispute', 'A judgment that you doubted was looked at by an expert'), ('decision', 'Something was decided about your own answers or pay')], max_length=16)),
                ('by_mail', models.BooleanField(default=True)),
                ('by_call', models.BooleanField(default=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='preferences', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table_comment': 'By which ways people want to be told of what',
                'constraints': [models.UniqueConstraint(fields=('user', 'event'), name='preference_once_an_event')],
            },
        ),
        migrations.CreateModel(
            name='Team',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=80, unique=True)),
                ('slug', models.SlugField(max_length=80, unique=True)),
                ('created_at', models.DateTimeField(default=kbpo.clock.now)),
                ('former', models.ManyToManyField(blank=True, help_text='Who left: what they have seen, a team that they join has seen', related_name='former_teams', to=settings.AUTH_USER_MODEL)),
                ('members', models.ManyToManyField(blank=True, related_name='teams', through='accounts.Membership', to=settings.AUTH_USER_MODEL)),
                ('owners', models.ManyToManyField(blank=True, help_text='Members who give roles and remove others', related_name='owned_teams', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table_comment': 'Teams of researchers; labels are shown per team',
            },
        ),
        migrations.AddField(
            model_name='membership',
            name='team',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='accounts.team'),
        ),
        migrations.AddField(
            model_name='invitation',
            name='team',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, to='accounts.team'),
        ),
        migrations.CreateModel(
            name='Token',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=80)),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('prefix', models.CharField(max_length=8)),
                ('scope', models.CharField(choices=[('read', 'Read: scores, judgments, problems'), ('upload', 'Read and upload; it spends nothing'), ('all', 'All that you may do, also confirm and spend')], default='all', max_length=8)),
                ('created_at', models.DateTimeField(default=kbpo.clock.now)),
                ('last_used_at', models.DateTimeField(null=True)),
                ('expires_at', models.DateTimeField(null=True)),
                ('revoked_at', models.DateTimeField(null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tokens', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table_comment': 'API tokens, hashed',
            },
        ),
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('url', models.CharField(max_length=500)),
                ('secret', models.CharField(default=secrets.token_urlsafe, max_length=64)),
                ('made_at', models.DateTimeField(default=kbpo.clock.now)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='webhooks', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table_comment': 'Addresses that are called about events',
                'constraints': [models.UniqueConstraint(fields=('user', 'url'), name='webhook_once')],
            },
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(db_index=True, max_length=16)),
                ('status_since', models.DateTimeField(default=kbpo.clock.now)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('next_try_at', models.DateTimeField(default=kbpo.clock.now)),
                ('reason', models.TextField(blank=True, default='', help_text='Why it waits or was given up, for its owner')),
                ('address', models.EmailField(blank=True, help_text='Of a mail', max_length=254)),
                ('event', models.CharField(max_length=16)),
                ('body', models.JSONField(help_text='What is said, besides number, event and time; of a mail that was sent its subject')),
                ('answered', models.PositiveSmallIntegerField(help_text='Status of the last answer', null=True)),
                ('made_at', models.DateTimeField(default=kbpo.clock.now)),
                ('request', models.ForeignKey(help_text='What it answers, of somebody from outside; it is forgotten with it', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='mails', to='accounts.accountrequest')),
                ('user', models.ForeignKey(help_text='Who is told, if they have an account', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to=settings.AUTH_USER_MODEL)),
                ('hook', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='accounts.webhook')),
            ],
            options={
                'db_table_comment': 'Calls of webhooks and mails, and what came of them',
                'indexes': [models.Index(condition=models.Q(('status', 'waiting')), fields=['next_try_at'], name='delivery_due')],
                'constraints': [models.CheckConstraint(condition=models.Q(('hook', None), ('address', ''), _connector='XOR'), name='delivery_by_call_or_mail')],
            },
        ),
        migrations.CreateModel(
            name='Audit',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_index=True, default=kbpo.clock.now)),
                ('what', models.CharField(help_text='The verb: open, pause, exclude …', max_length=40)),
                ('about', models.CharField(help_text="The row, e.g. 'submission:12'", max_length=120)),
                ('track', models.CharField(blank=True, help_text='Slug of the track, where there is one', max_length=120)),
                ('before', models.CharField(blank=True, max_length=200)),
                ('after', models.CharField(blank=True, max_length=200)),
                ('why', models.TextField(blank=True)),
                ('who', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table_comment': 'Who changed which state, and why; append-only',
                'indexes': [models.Index(fields=['about', 'at'], name='accounts_au_about_403920_idx')],
            },
        ),
        migrations.AlterUniqueTogether(
            name='membership',
            unique_together={('team', 'user')},
        ),
    ]
