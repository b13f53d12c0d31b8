"""Choosing one provider's answer and saying why each other one lost."""
