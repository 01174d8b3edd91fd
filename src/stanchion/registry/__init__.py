"""What a server offers and how a call on it is checked, without ever running anything by itself.

Owns the definitions of tools, resources, templates, prompts and completions: how they are derived from functions, held,
found, listed, and how arguments and results are checked and written. Does not own when or where a callback runs
(``server``, ``workers``), who may call it (``server``), nor breakers and slots (``machines``).
"""
