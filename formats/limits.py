"""How large a file may be. The service may set other numbers; each limit has a message of its
own.
"""

from dataclasses import dataclass, replace

MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest file that a reader accepts, measured in bytes, lines, relations and
    characters.
    """

    upload_bytes: int = 512 * MB
    unpacked_bytes: int = 4096 * MB
    ratio: int = 200
    lines: int = 20_000_000
    line_bytes: int = 64 * 1024
    relations: int = 2_000_000
    document_characters: int = 1_000_000
    messages: int = 10_000
    output_characters: int = 200_000
    passages: int = 200

    def for_corpus(self) -> "Limits":
        """Return these limits with longer lines: a line of a corpus is a whole document with its
        offsets.
        """
        # Up to 4 bytes a character of the text, and about 25 bytes for the offsets of a token of
        # two characters.
        return replace(self, line_bytes=max(self.line_bytes, 20 * self.document_characters))

    def for_outputs(self) -> "Limits":
        """Return these limits with longer lines: a line is a whole output, twelve bytes a character
        at most.
        """
        return replace(self, line_bytes=self.line_bytes + 12 * self.output_characters)
