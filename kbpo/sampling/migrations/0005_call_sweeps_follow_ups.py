import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('sampling', '0004_dispute_beside_other_teams'),
    ]

    operations = [
        migrations.RemoveConstraint('sweep', 'sweep_open_once'),
        migrations.RemoveConstraint('sweep', 'sweep_costs'),
        migrations.RemoveConstraint('sweeptarget', 'sweep_target_once'),
        migrations.RemoveIndex('sweeptarget', 'sweep_target_open'),
        migrations.RenameModel('Sweep', 'FollowUp'),
        migrations.RenameModel('SweepTarget', 'FollowUpTarget'),
        migrations.RenameField('followuptarget', 'sweep', 'follow_up'),
        migrations.AlterModelTableComment('followuptarget', 'Targets that follow-ups ask about'),
        migrations.AlterField(
            model_name='followup',
            name='documents',
            field=models.ManyToManyField(related_name='follow_ups', to='sampling.documentsample'),
        ),
        migrations.AlterField(
            model_name='followup',
            name='track',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='follow_ups', to='tracks.track'),
        ),
        migrations.AddIndex(
            'followuptarget',
            models.Index(condition=models.Q(('done_at__isnull', True)), fields=['follow_up', 'order'], name='follow_up_target_open'),
        ),
        migrations.AddConstraint(
            'followup',
            models.UniqueConstraint(condition=models.Q(('settled_at__isnull', True)), fields=('track',), name='follow_up_open_once'),
        ),
        migrations.AddConstraint(
            'followup',
            models.CheckConstraint(condition=models.Q(('price__gte', 0), ('workers__gt', 0)), name='follow_up_costs'),
        ),
        migrations.AddConstraint(
            'followuptarget',
            models.UniqueConstraint(fields=('follow_up', 'target'), name='follow_up_target_once'),
        ),
    ]
