"""Scores against true labels, which only evaluation ever sees."""
