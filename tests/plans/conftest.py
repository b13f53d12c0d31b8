"""Plans are tested on the evidence of the command's tests."""

from tests.cli.conftest import evidence, template

__all__ = ["evidence", "template"]
