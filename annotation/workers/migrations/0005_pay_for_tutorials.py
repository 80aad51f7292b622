from decimal import Decimal

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

BEFORE, NOW = Decimal("0.00"), Decimal("0.75")


def pay(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """What stands at the old default follows the new one. A track that pays nothing where the service paid something
    was told so, and stays."""
    intake = apps.get_model("annotators", "Intake")
    if not intake.objects.filter(track=None).exclude(tutorial_reward=BEFORE).exists():
        intake.objects.filter(tutorial_reward=BEFORE).update(tutorial_reward=NOW)


class Migration(migrations.Migration):
    dependencies = [("annotators", "0004_tell_appeals_about_pay")]

    operations = [
        migrations.AlterField(
            model_name="intake",
            name="tutorial_reward",
            field=models.DecimalField(
                decimal_places=2,
                default=Decimal("0.75"),
                help_text="For passing an interface's tutorial, once",
                max_digits=6,
            ),
        ),
        migrations.RunPython(pay, migrations.RunPython.noop, elidable=True),
    ]
