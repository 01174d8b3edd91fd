"""Bytes and types: what a message is, how it is read and written, and how the revisions differ."""
