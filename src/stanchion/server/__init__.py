"""The meeting place: the kernel decides, the runner does, the server is what users hold."""
