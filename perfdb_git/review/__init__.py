"""What a change does to evidence and to answers, and how an answer came to be."""
