from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("annotation", "0007_payers_are_columns")]

    operations = [migrations.RenameField("worker", "readmitted_at", "reinstated_at")]
