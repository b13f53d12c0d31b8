"""The same answers for many questions at once: each provider's twin that works on columns."""
