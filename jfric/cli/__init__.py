"""The commands of ``jfric``, one module each; :mod:`jfric.cli.main` collects them."""
