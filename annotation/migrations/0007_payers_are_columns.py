from django.db import migrations, models
from django.db.models import Q

KINDS = ("submission", "pilot", "documents", "sweep", "gold", "tutorial", "bonus", "experts")
CHOICES = [(kind, kind) for kind in KINDS]
SPLIT = """
    UPDATE annotation_question SET payer_kind = split_part(payer, ':', 1),
        payer_number = coalesce(nullif(split_part(payer, ':', 2), ''), track_id::text)::bigint;
    UPDATE annotation_halt SET payer_kind = split_part(payer, ':', 1),
        payer_number = split_part(payer, ':', 2)::bigint WHERE payer <> '';
    UPDATE annotation_bonus SET payer_kind = split_part(payer, ':', 1),
        payer_number = split_part(payer, ':', 2)::bigint WHERE payer <> '';
"""
"""What experts are asked was paid by nobody in particular: it is their track's now."""


class Migration(migrations.Migration):
    dependencies = [("annotation", "0006_pay_more_for_more_work")]

    operations = [
        *(
            operation
            for model in ("question", "halt", "bonus")
            for operation in (
                migrations.AddField(model, "payer_kind", models.CharField(max_length=12, null=True)),
                migrations.AddField(
                    model, "payer_number", models.PositiveBigIntegerField(null=True)
                ),
            )
        ),
        migrations.RunSQL(SPLIT, migrations.RunSQL.noop),
        migrations.RemoveIndex(model_name="question", name="annotation__payer_460676_idx"),
        *(migrations.RemoveField(model, "payer") for model in ("question", "halt", "bonus")),
        migrations.AlterField(
            "question",
            "payer_kind",
            models.CharField(choices=CHOICES, help_text="What pays for it …", max_length=12),
        ),
        migrations.AlterField(
            "question",
            "payer_number",
            models.PositiveBigIntegerField(help_text="… and the number of that"),
        ),
        migrations.AlterField(
            "halt",
            "payer_kind",
            models.CharField(
                help_text="Who pays for the batch that is stopped; none: all",
                max_length=12,
                null=True,
            ),
        ),
        migrations.AlterField(
            "bonus",
            "payer_kind",
            models.CharField(
                help_text=(
                    "Whose reservation it is spent from, under its token, where an answer earned"
                    " it; none: one of its own"
                ),
                max_length=12,
                null=True,
            ),
        ),
        migrations.AddIndex(
            "question",
            models.Index(fields=["payer_kind", "payer_number", "status"], name="question_by_payer"),
        ),
        migrations.AddConstraint(
            "question",
            models.CheckConstraint(condition=Q(payer_kind__in=KINDS), name="question_payer_is_one"),
        ),
        *(
            migrations.AddConstraint(
                model,
                models.CheckConstraint(
                    condition=Q(payer_kind=None, payer_number=None)
                    | Q(payer_kind__in=KINDS, payer_number__isnull=False),
                    name=f"{model}_payer_is_whole",
                ),
            )
            for model in ("halt", "bonus")
        ),
    ]
