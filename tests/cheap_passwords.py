"""The service's settings with a password hash that costs nothing, for processes that tests
start.
"""

from kbpo.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
