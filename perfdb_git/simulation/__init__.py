"""Exact simulation of pipelines on timing profiles, in integer picoseconds or femtoseconds."""
