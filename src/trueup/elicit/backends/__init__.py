"""Ways to ask a language model; one file each."""
