"""Speed measurements, one JSON file each."""
