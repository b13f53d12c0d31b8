"""Plans: resolved, locked to a commit, verified, and compared with newer evidence."""
