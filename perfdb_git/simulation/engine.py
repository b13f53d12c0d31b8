"""The choice between the two engines: the fast one wherever it is exact."""

from __future__ import annotations

from perfdb_git.errors import UsageError
from perfdb_git.simulation.event_engine import EventEngine
from perfdb_git.simulation.feed_forward import FeedForwardEngine, is_feed_forward
from perfdb_git.simulation.tick_model import Engine, TickModel

MAX_EVENT_VISITS = 100_000_000
"""Visits that the event engine takes on: about a minute and 0.8 GB."""

MAX_VISITS = 10_000_000_000
"""Visits that the feed-forward engine takes on: about two minutes."""

MAX_LANES = 50_000_000
"""Lanes that all components may have together, those beyond a lane a visit left out: 0.4 GB."""


def start_engine(model: TickModel, *, document: str) -> Engine:
    """Engine for a model.

    Parameters
    ----------
    model : TickModel
        Any.
    document : str
        The pipeline's, for messages.

    Raises
    ------
    InvalidInputError
        If the run might overflow the grid (``time-overflow``).
    UsageError
        If it has more visits (``too-many-visits``) or lanes (``too-many-lanes``) than the engine
        takes on.
    """
    fast = is_feed_forward(model)
    limit = MAX_VISITS if fast else MAX_EVENT_VISITS
    visits = model.n_jobs * model.n_stages
    if visits > limit:
        kind = "feed-forward" if fast else "re-entrant, closed-loop or multi-lane"
        raise UsageError(
            f"{document}: {model.n_jobs} jobs of {model.n_stages} stages are {visits} visits; a "
            f"{kind} run may have {limit}",
            code="too-many-visits",
            remedy="run fewer jobs",
        )
    if sum(model.usable_lanes()) > MAX_LANES:
        raise UsageError(
            f"{document}: all components together have more than {MAX_LANES} lanes in use",
            code="too-many-lanes",
            remedy="run fewer jobs, or lower the lanes",
        )
    model.guard(document=document)
    return FeedForwardEngine(model) if fast else EventEngine(model)
