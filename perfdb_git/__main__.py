"""``python -m perfdb_git`` is the ``perfdb`` command."""

import sys

from perfdb_git.cli.main import main

sys.exit(main())
