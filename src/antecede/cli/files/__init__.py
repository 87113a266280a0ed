"""Output of commands: files, folders of part files, quarantines, pages."""
