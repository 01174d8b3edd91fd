"""Decisions over time: small machines that take events and the time, and say what follows. No I/O, no clock."""
