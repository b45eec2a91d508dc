"""The soak: a long mix of good and hostile candidates, and what it leaves."""
