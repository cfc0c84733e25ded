"""Predictions from logs that other tools have written."""
