from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0003_find_what_a_worker_has_in_hand"),
    ]

    operations = [
        migrations.RemoveIndex(model_name="hit", name="annotation__platfor_4250a4_idx"),
        migrations.AddIndex(
            model_name="hit",
            index=models.Index(fields=["platform", "status", "order", "id"], name="hit_in_order"),
        ),
    ]
