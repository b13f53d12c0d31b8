"""Named, versioned features of operations, and their physical bases."""
