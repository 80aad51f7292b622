import django.db.models.deletion
import kbpo.clock
from django.conf import settings
from django.db import migrations, models


MOVE = """
    UPDATE sampling_expertcheck c SET status = 'answered' WHERE answered_at IS NOT NULL;
    UPDATE sampling_expertcheck c SET raised_at = r.drawn_at,
        held_until = c.taken_at + interval '30 minutes'
        FROM sampling_expertround r WHERE r.id = c.round_id;
    CREATE TEMPORARY TABLE moved ON COMMIT DROP AS
        SELECT a.*, q.interface, q.payload, q.shown,
            CASE WHEN q.payer_kind <> 'experts' THEN q.id END AS asked,
            CASE WHEN q.payer_kind = 'experts' THEN 'marked'
                 WHEN q.interface = 'entities' THEN 'names' ELSE 'pairs' END AS judgment
        FROM annotation_adjudication a JOIN annotation_question q ON q.id = a.question_id;
    INSERT INTO sampling_expertround (track_id, kind, judgment, number, budget, probability, seed,
            drawn_at, drawn_by_id, released)
        SELECT track_id, 'random', min(judgment),
            row_number() OVER (PARTITION BY track_id ORDER BY min(raised_at), seed), count(*),
            min(probability), seed, min(raised_at), min(raised_by_id), 1.0
        FROM moved WHERE kind = 'random' GROUP BY track_id, seed;
    -- No number that an address had is given to another row: nobody's late answer meets a stranger's.
    SELECT setval(pg_get_serial_sequence('sampling_expertcheck', 'id'), greatest(1,
        (SELECT max(id) FROM sampling_expertcheck), (SELECT max(id) FROM annotation_adjudication)));
    INSERT INTO sampling_expertcheck (track_id, kind, status, round_id, target_id, "order",
            judgment, question, interface, payload, shown, note, raised_by_id, submission_id,
            raised_at, holder_id, held_until, draft, raw, value, agrees, remark, expert_id,
            answered_at)
        SELECT m.track_id, m.kind, m.status, r.id, m.target_id, m."order",
            m.judgment, m.asked, m.interface, m.payload, m.shown, m.note, m.raised_by_id,
            m.submission_id, m.raised_at, m.holder_id, m.held_until, m.draft, m.raw, m.answer,
            m.agrees, m.remark, m.expert_id, m.answered_at
        FROM moved m LEFT JOIN sampling_expertround r
            ON m.kind = 'random' AND r.kind = 'random' AND r.track_id = m.track_id
            AND r.seed = m.seed
        ORDER BY m.id;
    SET CONSTRAINTS ALL IMMEDIATE
"""
"""What experts were asked for another reason than to correct scores, into the one table"""


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0001_baseline'),
        ('instances', '0001_baseline'),
        ('sampling', '0001_baseline'),
        ('submissions', '0001_baseline'),
        ('tracks', '0001_baseline'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelTableComment(
            name='expertcheck',
            table_comment='Judgments that experts are asked about, blind, with what they said',
        ),
        migrations.AlterModelTableComment(
            name='expertround',
            table_comment='Draws of judgments for experts, with their chances',
        ),
        migrations.RemoveConstraint(
            model_name='expertcheck',
            name='expert_check_once',
        ),
        migrations.RemoveConstraint(
            model_name='expertround',
            name='expert_round_number_once',
        ),
        migrations.RemoveConstraint(
            model_name='expertround',
            name='expert_round_open_once',
        ),
        migrations.RenameField('expertcheck', 'answered_by', 'expert'),
        migrations.RenameField('expertcheck', 'taken_by', 'holder'),
        migrations.AddField(
            model_name='expertcheck',
            name='agrees',
            field=models.BooleanField(help_text='Whether the expert says what the label said; not asked of checks', null=True),
        ),
        migrations.AddField(
            model_name='expertcheck',
            name='held_until',
            field=models.DateTimeField(help_text='Until then nobody but its holder is asked it', null=True),
        ),
        migrations.AddField(
            model_name='expertcheck',
            name='judgment',
            field=models.CharField(blank=True, help_text='Kind of judgment that it is, but of checks', max_length=8),
        ),
        migrations.AddField(
            model_name='expertcheck',
            name='kind',
            field=models.CharField(choices=[('check', 'drawn to correct scores'), ('dispute', 'disputed'), ('disagreement', 'people were divided'), ('random', 'drawn at random')], default='check', max_length=12),
        ),
        migrations.AddField(
            model_name='expertcheck',
            name='note',
            field=models.TextField(blank=True, help_text='What the researcher says; the expert reads it afterwards'),
        ),
        migrations.AddField(
            model_name='expertcheck',
            name='question',
            field=models.PositiveBigIntegerField(help_text='The number of the question that people answered, if there was one', null=True),
        ),
        migrations.AddField(
            model_name='expertcheck',
            name='raised_at',
            field=models.DateTimeField(default=kbpo.clock.now),
        ),
        migrations.AddField(
            model_name='expertcheck',
            name='raised_by',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='expertcheck',
            name='remark',
            field=models.TextField(blank=True, help_text='What the expert wrote after seeing the votes'),
        ),
        migrations.AddField(
            model_name='expertcheck',
            name='status',
            field=models.CharField(choices=[('open', 'Open'), ('answered', 'Answered'), ('dropped', 'Dropped')], default='open', max_length=10),
        ),
        migrations.AddField(
            model_name='expertcheck',
            name='submission',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='submissions.submission'),
        ),
        migrations.AddField(
            model_name='expertround',
            name='judgment',
            field=models.CharField(blank=True, help_text='Kind of judgments that a random draw is of', max_length=8),
        ),
        migrations.AddField(
            model_name='expertround',
            name='kind',
            field=models.CharField(choices=[('check', 'Check'), ('random', 'Random')], default='check', max_length=8),
        ),
        migrations.AddField(
            model_name='expertround',
            name='probability',
            field=models.FloatField(help_text='Of each that a random draw could have found', null=True),
        ),
        migrations.AddField(
            model_name='expertround',
            name='seed',
            field=models.BigIntegerField(help_text='Of a random draw; checks have keyed numbers', null=True),
        ),
        migrations.AlterField(
            model_name='expertcheck',
            name='draft',
            field=models.JSONField(help_text="Its holder's answer so far", null=True),
        ),
        migrations.AlterField(
            model_name='expertcheck',
            name='order',
            field=models.FloatField(help_text='Random place in the queue; of checks their random number / chance'),
        ),
        migrations.AlterField(
            model_name='expertcheck',
            name='round',
            field=models.ForeignKey(help_text='The draw with its chance; none where it was picked', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='checks', to='sampling.expertround'),
        ),
        migrations.AlterField(
            model_name='expertround',
            name='budget',
            field=models.PositiveIntegerField(help_text='Judgments that were wanted; of checks the expected number of new ones'),
        ),
        migrations.AlterField(
            model_name='expertround',
            name='ended_at',
            field=models.DateTimeField(help_text='Of checks: when all was answered, or the rest was given up', null=True),
        ),
        migrations.AlterField(
            model_name='expertround',
            name='number',
            field=models.PositiveSmallIntegerField(help_text='Counts from 1 within track and kind'),
        ),
        migrations.RunSQL(MOVE),  # nothing leads back
        migrations.RemoveField('expertcheck', 'taken_at'),
        migrations.AddIndex(
            model_name='expertcheck',
            index=models.Index(fields=['status', 'order'], name='expert_check_queue'),
        ),
        migrations.AddConstraint(
            model_name='expertcheck',
            constraint=models.UniqueConstraint(condition=models.Q(('kind', 'check')), fields=('track', 'target'), name='expert_check_once'),
        ),
        migrations.AddConstraint(
            model_name='expertcheck',
            constraint=models.UniqueConstraint(condition=models.Q(('status', 'open')), fields=('track', 'target', 'kind'), name='expert_check_open_once'),
        ),
        migrations.AddConstraint(
            model_name='expertcheck',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status', 'answered'), _negated=True), models.Q(('answered_at__isnull', False), ('raw__isnull', False)), _connector='OR'), name='expert_check_answered_has_answer'),
        ),
        migrations.AddConstraint(
            model_name='expertcheck',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('kind__in', ['check', 'random']), ('round__isnull', False)), models.Q(('kind__in', ['dispute', 'disagreement']), ('round__isnull', True)), _connector='OR'), name='expert_check_drawn_has_round'),
        ),
        migrations.AddConstraint(
            model_name='expertround',
            constraint=models.UniqueConstraint(fields=('track', 'kind', 'number'), name='expert_round_number_once'),
        ),
        migrations.AddConstraint(
            model_name='expertround',
            constraint=models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True), ('kind', 'check')), fields=('track',), name='expert_round_open_once'),
        ),
        migrations.AddConstraint(
            model_name='expertround',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('kind', 'random'), ('probability__gt', 0), ('probability__lte', 1)), models.Q(('kind', 'check'), ('probability__isnull', True)), _connector='OR'), name='expert_round_random_has_probability'),
        ),
    ]
