from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("annotators", "0005_promises_are_keys")]

    operations = [migrations.RenameField("appeal", "readmitted", "reinstated")]
