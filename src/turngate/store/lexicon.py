"""Which contents have a word: the part of the search index that is the database's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sqlite3 import Connection


class Lexicon(Protocol):
    """Words, and the rows of `content` that have them."""

    def having(self, conn: Connection, word: str, *, whole: bool) -> set[int]:
        """Rows with the word; unless `whole`, also with one that begins with it."""
        ...

    def add(self, conn: Connection, key: int, words: str) -> None:
        """Bring in a row with its words, parted by blanks."""
        ...

    def remove(self, conn: Connection, key: int, words: str) -> None:
        """Take a row out; the words are those that it was brought in with."""
        ...

    def clear(self, conn: Connection) -> None:
        """Take all out."""
        ...

    def tidy(self, conn: Connection) -> None:
        """Do what is worth its time after much was taken out."""
        ...


class Fts5:
    """SQLite's full-text index, which keeps no copy of the words."""

    def having(self, conn: Connection, word: str, *, whole: bool) -> set[int]:
        """Rows with the word."""
        match = f'"{word}"' + ("" if whole else "*")
        return {key for (key,) in conn.execute("SELECT rowid FROM words WHERE words MATCH ?", (match,))}

    def add(self, conn: Connection, key: int, words: str) -> None:
        """Bring in a row."""
        conn.execute("INSERT INTO words (rowid, word) VALUES (?, ?)", (key, words))

    def remove(self, conn: Connection, key: int, words: str) -> None:
        """Take a row out."""
        conn.execute("INSERT INTO words (words, rowid, word) VALUES ('delete', ?, ?)", (key, words))

    def clear(self, conn: Connection) -> None:
        """Take all out."""
        conn.execute("INSERT INTO words (words) VALUES ('delete-all')")

    def tidy(self, conn: Connection) -> None:
        """Merge the index anew."""
        conn.execute("INSERT INTO words (words) VALUES ('optimize')")
