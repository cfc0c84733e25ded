"""The objects of the method: reports, joint table, losses, moments."""
