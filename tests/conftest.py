"""Settings of every test."""

import os

from hypothesis import settings

# Hundreds of tests start the command: compiling the package anew each time is half of their cost.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A deadline would make an assertion of time out of every property.
settings.register_profile("perfdb", deadline=None)
settings.load_profile("perfdb")
