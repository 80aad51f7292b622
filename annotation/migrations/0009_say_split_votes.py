from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0008_call_given_up_questions_unanswered'),
    ]

    operations = [
        migrations.RenameField('policy', 'divided_limit', 'split_limit'),
        migrations.RenameField('policy', 'divided_at', 'split_looked_at'),
    ]
