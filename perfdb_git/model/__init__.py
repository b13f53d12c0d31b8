"""What the field talks about, as frozen dataclasses: no I/O, standard library only."""
