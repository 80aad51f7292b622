import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import kbpo.clock


class Migration(migrations.Migration):
    """Notes since when somebody belongs to a team, and is an admin. For members of before it stays
    null: since ever; admins are it since they have an account."""

    dependencies = [("accounts", "0001_baseline")]
    operations = [
        migrations.AddField("user", "admin_since", models.DateTimeField(
            help_text="When they first became an admin; stays, for what they saw they know",
            null=True)),
        migrations.RunSQL(
            "UPDATE accounts_user SET admin_since = date_joined WHERE is_staff",
            migrations.RunSQL.noop,
        ),
        migrations.AddField("membership", "joined_at", models.DateTimeField(null=True)),
        migrations.AlterField("membership", "joined_at", models.DateTimeField(
            default=kbpo.clock.now, help_text="Null: before this was noted", null=True)),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "ALTER TABLE accounts_team_former ADD joined_at timestamptz;"
                    "COMMENT ON TABLE accounts_team_former IS"
                    " 'Who belonged to which team, and left it'",
                    "ALTER TABLE accounts_team_former DROP joined_at",
                )
            ],
            state_operations=[
                migrations.CreateModel(
                    name="Former",
                    fields=[
                        ("id", models.BigAutoField(auto_created=True, primary_key=True,
                                                   serialize=False, verbose_name="ID")),
                        ("joined_at", models.DateTimeField(
                            help_text="Null: before this was noted", null=True)),
                        ("team", models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE, related_name="left_by",
                            to="accounts.team")),
                        ("user", models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE, related_name="left",
                            to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        "db_table": "accounts_team_former",
                        "db_table_comment": "Who belonged to which team, and left it",
                        "unique_together": {("team", "user")},
                    },
                ),
                migrations.AlterField("team", "former", models.ManyToManyField(
                    blank=True, help_text="Who left: what they have seen, a team that they join has seen",
                    related_name="former_teams", through="accounts.Former",
                    to=settings.AUTH_USER_MODEL)),
            ],
        ),
    ]
