"""The judge: worlds of members moved by hand, conformance, explorer, scripts."""
