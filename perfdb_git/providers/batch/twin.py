"""What every batch form of a provider takes from the provider itself."""

from __future__ import annotations

from perfdb_git.model.estimate import Method
from perfdb_git.providers.batch.context import BatchContext
from perfdb_git.providers.protocol import CostProvider


class ProviderTwin:
    """Name, method and revision of a provider, for its form that works on columns.

    Parameters
    ----------
    provider : CostProvider
        The provider.
    context : BatchContext
        Of the batch.
    """

    def __init__(self, provider: CostProvider, context: BatchContext) -> None:
        self._source = provider
        self._context = context

    @property
    def name(self) -> str:
        """Name of the provider."""
        return self._source.name

    @property
    def method(self) -> Method:
        """Method of the provider."""
        return self._source.method

    @property
    def revision(self) -> str:
        """Revision of the provider."""
        return self._source.revision
