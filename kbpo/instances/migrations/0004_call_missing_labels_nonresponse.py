from django.db import migrations, models

RENAME = """
    UPDATE instances_label SET method = 'nonresponse', origin = regexp_replace(origin, '/given_up$', '/nonresponse')
    WHERE method = 'given_up'
"""
BACK = """
    UPDATE instances_label SET method = 'given_up', origin = regexp_replace(origin, '/nonresponse$', '/given_up')
    WHERE method = 'nonresponse'
"""


class Migration(migrations.Migration):

    dependencies = [
        ('instances', '0003_refer_without_lookups'),
    ]

    operations = [
        migrations.RunSQL(RENAME, BACK),
        migrations.AlterField(
            model_name='label',
            name='method',
            field=models.CharField(help_text='majority, gold, nonresponse …', max_length=24),
        ),
    ]
