from django.db import migrations, models

KINDS = ("submission", "pilot", "documents", "sweep", "gold", "tutorial", "bonus", "experts")
CHOICES = [(kind, kind) for kind in KINDS]
SPLIT = """
    UPDATE money_ledger SET purpose_kind = split_part(purpose, ':', 1),
        purpose_number = split_part(purpose, ':', 2)::bigint
"""
JOIN = "UPDATE money_ledger SET purpose = purpose_kind || ':' || purpose_number"


class Migration(migrations.Migration):
    dependencies = [("money", "0003_pay_more_for_more_work")]

    operations = [
        migrations.RemoveIndex(model_name="ledger", name="ledger_open_reservations"),
        migrations.AddField(
            model_name="ledger",
            name="purpose_kind",
            field=models.CharField(max_length=12, null=True),
        ),
        migrations.AddField(
            model_name="ledger",
            name="purpose_number",
            field=models.PositiveBigIntegerField(null=True),
        ),
        migrations.RunSQL(SPLIT, JOIN),
        migrations.AlterField(
            model_name="ledger",
            name="purpose_kind",
            field=models.CharField(
                choices=CHOICES, help_text="What it is for …", max_length=12
            ),
        ),
        migrations.AlterField(
            model_name="ledger",
            name="purpose_number",
            field=models.PositiveBigIntegerField(help_text="… and the number of that"),
        ),
        migrations.RemoveField(model_name="ledger", name="purpose"),
        migrations.AddIndex(
            model_name="ledger",
            index=models.Index(fields=["purpose_kind", "purpose_number"], name="ledger_by_purpose"),
        ),
        migrations.AddIndex(
            model_name="ledger",
            index=models.Index(
                condition=models.Q(closed_at=None, kind="reserve"),
                fields=["purpose_kind", "purpose_number"],
                name="ledger_open_reservations",
            ),
        ),
        migrations.AddConstraint(
            model_name="ledger",
            constraint=models.CheckConstraint(
                condition=models.Q(purpose_kind__in=KINDS), name="ledger_purpose_is_one"
            ),
        ),
    ]
