"""The edges on which messages come in and go out. All I/O with clients is here."""
