import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

CARRY_OVER = """
    UPDATE accounts_team_members m SET news_read_at = u.news_read_at
    FROM accounts_user u WHERE u.id = m.user_id AND u.news_read_at IS NOT NULL
"""
CARRY_BACK = """
    UPDATE accounts_user u SET news_read_at = m.news_read_at
    FROM (
        SELECT user_id, min(news_read_at) AS news_read_at FROM accounts_team_members
        GROUP BY user_id
    ) m WHERE u.id = m.user_id
"""


class Migration(migrations.Migration):

    dependencies = [
        ("accounts", "0001_baseline"),
    ]

    operations = [
        # The table is there, made for the field `members`; it becomes one of our own.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="Membership",
                    fields=[
                        ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                        ("team", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="memberships", to="accounts.team")),
                        ("user", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="memberships", to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        "db_table": "accounts_team_members",
                        "unique_together": {("team", "user")},
                    },
                ),
                migrations.AlterField(
                    model_name="team",
                    name="members",
                    field=models.ManyToManyField(blank=True, related_name="teams", through="accounts.Membership", to=settings.AUTH_USER_MODEL),
                ),
            ],
        ),
        migrations.AlterModelTableComment(name="membership", table_comment="Who belongs to which team"),
        migrations.AddField(
            model_name="membership",
            name="news_read_at",
            field=models.DateTimeField(help_text="Up to when they have read what happened to the team's runs", null=True),
        ),
        migrations.RunSQL(CARRY_OVER, CARRY_BACK),
        migrations.RemoveField(model_name="user", name="news_read_at"),
        migrations.AddField(
            model_name="accountrequest",
            name="user",
            field=models.ForeignKey(help_text="Who asked, once it is known: they were logged in, or used the link", null=True, on_delete=django.db.models.deletion.CASCADE, related_name="requests", to=settings.AUTH_USER_MODEL),
        ),
    ]
