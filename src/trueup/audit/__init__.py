"""What can be said about two predictors without labels."""
