"""Exact forms: shorter ways to write the whole of a text, each with its inverse.

A form is tried before anything is hidden, and used only where it makes everything fit. Whatever it is, the
original is put together again from it first and compared; a form that fails this isn't used.
"""

from __future__ import annotations

#: An exact form takes at most this share of the tokens of a text. Where it takes more, a choice of lines or
#: values saves far more and loses little: at the wide budget this keeps a point of the mean saving.
MOST_SHARE = 0.6
