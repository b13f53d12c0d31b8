"""How blocks and microbatches are laid out on a pipeline, and what must divide for it.

Source: the interleaved one-forward-one-backward schedule (Narayanan et al., SC '21), with
Calculon's rules for uneven blocks and microbatches (Isaev et al., SC '23).
"""

from __future__ import annotations

from dataclasses import dataclass

from perfdb_git.model.training import TrainingExecution, TrainingModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Counts for the first processor of a pipeline.

    Where the blocks do not divide by the pipeline, the first processors hold one more:
    ``missing_blocks`` of the last processors' places stay empty. A chunk is the blocks that run
    without a pipeline message, its last one is the edge block.
    """

    blocks: int
    missing_blocks: int
    chunks: int
    blocks_per_chunk: int
    microbatches: int
    stages: int

    @property
    def base_blocks(self) -> int:
        """Blocks of a chunk before its edge block."""
        return self.blocks_per_chunk - 1

    @property
    def kept_microbatches(self) -> int:
        """Microbatches whose activations are alive at once."""
        return min(self.microbatches, self.stages)

    @property
    def activation_copies(self) -> float:
        """Copies of a block's activations, more of them with interleaved chunks."""
        if self.chunks == 1:
            return self.kept_microbatches
        more = (self.stages - 1) / (self.chunks * self.stages)
        return self.kept_microbatches * (1 + more)

    @property
    def uneven_microbatches(self) -> int:
        """Microbatches after the last full round of the pipeline."""
        return self.microbatches % self.stages

    @property
    def extra_bubbles(self) -> int:
        """Chunk times lost because the last round of the pipeline is not full."""
        if self.uneven_microbatches == 0:
            return 0
        return (self.chunks - 1) * (self.stages - self.uneven_microbatches)

    def per_batch(self, base: float, edge: float) -> float:
        """Return a time of base and edge blocks over all chunks and microbatches of a batch."""
        return self.microbatches * self.chunks * self.per_chunk(base, edge)

    def per_chunk(self, base: float, edge: float) -> float:
        """Return a time of base and edge blocks over one chunk."""
        return self.base_blocks * base + edge


def schedule_of(model: TrainingModel, execution: TrainingExecution) -> Schedule:
    """Return the schedule of a model and an execution that fit together."""
    pipeline = execution.pipeline_parallel
    blocks = -(-model.blocks // pipeline.processors)
    return Schedule(
        blocks=blocks,
        missing_blocks=-model.blocks % pipeline.processors,
        chunks=pipeline.interleaving,
        blocks_per_chunk=blocks // pipeline.interleaving,
        microbatches=execution.microbatches,
        stages=pipeline.processors,
    )
