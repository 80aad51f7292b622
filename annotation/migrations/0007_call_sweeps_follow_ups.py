from django.db import migrations, models

KINDS = ['submission', 'pilot', 'documents', 'follow_up', 'gold', 'tutorial', 'bonus', 'experts']
WHOLE = models.Q(
    models.Q(('payer_kind', None), ('payer_number', None)),
    models.Q(('payer_kind__in', tuple(KINDS)), ('payer_number__isnull', False)),
    _connector='OR',
)


def _renamed(table):
    statement = "UPDATE {} SET payer_kind = '{}' WHERE payer_kind = '{}'"
    return migrations.RunSQL(
        statement.format(table, 'follow_up', 'sweep'), statement.format(table, 'sweep', 'follow_up')
    )


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0006_note_answers_that_break_us'),
    ]

    operations = [
        migrations.RemoveConstraint('bonus', 'bonus_payer_is_whole'),
        migrations.RemoveConstraint('halt', 'halt_payer_is_whole'),
        migrations.RemoveConstraint('question', 'question_payer_is_one'),
        _renamed('annotation_bonus'),
        _renamed('annotation_halt'),
        _renamed('annotation_question'),
        migrations.AlterField(
            model_name='question',
            name='payer_kind',
            field=models.CharField(choices=[(kind, kind) for kind in KINDS], help_text='What pays for it …', max_length=12),
        ),
        migrations.AddConstraint('bonus', models.CheckConstraint(condition=WHOLE, name='bonus_payer_is_whole')),
        migrations.AddConstraint('halt', models.CheckConstraint(condition=WHOLE, name='halt_payer_is_whole')),
        migrations.AddConstraint(
            'question',
            models.CheckConstraint(condition=models.Q(('payer_kind__in', tuple(KINDS))), name='question_payer_is_one'),
        ),
    ]
