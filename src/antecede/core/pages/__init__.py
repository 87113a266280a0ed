"""Pages for the browser of this machine: one file of plain modules, and a local server."""
