"""Larger than memory, larger than one machine, and as data arrives."""
