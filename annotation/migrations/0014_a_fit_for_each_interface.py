"""A model is fitted for each interface by itself; those that were kept are of pairs that were asked alone."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models


def name_the_interface(apps: Any, schema_editor: Any) -> None:
    for policy in apps.get_model("annotation", "Policy").objects.exclude(model={}):
        if "prior" in policy.model:
            policy.model = {"relation": policy.model}
            policy.save(update_fields=["model"])


def only_the_pairs(apps: Any, schema_editor: Any) -> None:
    for policy in apps.get_model("annotation", "Policy").objects.exclude(model={}):
        policy.model = policy.model.get("relation", {})
        policy.save(update_fields=["model"])


class Migration(migrations.Migration):
    dependencies = [("annotation", "0013_hold_what_experts_are_asked")]

    operations = [
        migrations.AlterField(
            model_name="policy",
            name="model",
            field=models.JSONField(
                default=dict, help_text="Interface -> prior and confusion matrices of its last fit, by worker"
            ),
        ),
        migrations.RunPython(name_the_interface, only_the_pairs),
    ]
