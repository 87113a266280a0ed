"""Traces and tables as DataFrames: the data source, spans, headers, files."""
