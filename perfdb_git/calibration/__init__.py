"""Learning response behaviour from records: splits, held-out reports, calibration documents."""
