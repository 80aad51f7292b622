"""Nobody could download inputs until now, so nobody was asked whether everybody may: where there are
some, an admin says so first.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations


def keep(apps: Any, _: Any) -> None:
    """Nothing; corpora of inputs that exist are not for everybody."""
    keys = apps.get_model("generation", "Input").objects.values("corpus")
    apps.get_model("corpus", "Corpus").objects.filter(pk__in=keys).update(may_be_downloaded=False)


class Migration(migrations.Migration):
    dependencies = [("corpus", "0001_baseline"), ("generation", "0001_baseline")]
    operations = [migrations.RunPython(keep, migrations.RunPython.noop)]
