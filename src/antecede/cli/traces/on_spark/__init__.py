"""Commands on traces with `--engine spark`."""
