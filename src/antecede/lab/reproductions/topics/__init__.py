"""The study of Nakayama 2017."""
