"""Study of Nakayama 2017."""
