"""What a person asks for, one command, one file: they return what they found; the command line parses and prints."""
