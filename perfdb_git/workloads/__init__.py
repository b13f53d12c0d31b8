"""Plans of whole workloads: a model and its parallelism become tasks, tasks become queries."""
