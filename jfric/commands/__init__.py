"""The commands of ``jfric``, one module each; :mod:`jfric.main` puts them together."""
