"""Reports out of a language model."""
