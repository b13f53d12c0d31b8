"""Settings of every test."""

from hypothesis import settings

# A deadline would make an assertion of time out of every property.
settings.register_profile("perfdb", deadline=None)
settings.load_profile("perfdb")
