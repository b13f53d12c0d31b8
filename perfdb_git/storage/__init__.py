"""Evidence in Git: object store, layout, index, typed repository access."""
