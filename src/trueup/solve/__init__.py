"""From a joint table to certified reports."""
