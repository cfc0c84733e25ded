"""What is kept after fitting."""
