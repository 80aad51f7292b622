from django.db import migrations, models

KINDS = ['submission', 'pilot', 'documents', 'follow_up', 'gold', 'tutorial', 'bonus', 'experts', 'late']

RENAME = """
    UPDATE money_ledger SET purpose_kind = 'follow_up', key = regexp_replace(key, '(^|:)sweep:', '\\1follow_up:')
    WHERE purpose_kind = 'sweep'
"""
BACK = """
    UPDATE money_ledger SET purpose_kind = 'sweep', key = regexp_replace(key, '(^|:)follow_up:', '\\1sweep:')
    WHERE purpose_kind = 'follow_up'
"""


class Migration(migrations.Migration):

    dependencies = [
        ('money', '0002_pay_answers_that_came_too_late'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='ledger',
            name='ledger_purpose_is_one',
        ),
        migrations.RunSQL(RENAME, BACK),
        migrations.AlterField(
            model_name='ledger',
            name='purpose_kind',
            field=models.CharField(choices=[(kind, kind) for kind in KINDS], help_text='What it is for …', max_length=12),
        ),
        migrations.AddConstraint(
            model_name='ledger',
            constraint=models.CheckConstraint(condition=models.Q(('purpose_kind__in', tuple(KINDS))), name='ledger_purpose_is_one'),
        ),
    ]
