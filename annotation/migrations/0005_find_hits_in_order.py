from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0004_say_in_a_column_whether_a_judgment_counts"),
    ]

    operations = [
        migrations.RemoveIndex(model_name="hit", name="annotation__platfor_4250a4_idx"),
        migrations.AddIndex(
            model_name="hit",
            index=models.Index(fields=["platform", "status", "order", "id"], name="hit_in_order"),
        ),
    ]
