"""Where callbacks run: on a callback loop (``loop``), on threads (``threads``), or on the protocol loop (``inline``).

Each is a ``stanchion.server.ports.Crew``. What is the same for all, from the call to the rendered result, is ``execution``.
"""
