"""A program at a terminal of its own, and the person before it: types, and waits for what it shows.

There is no emulator: what is waited for is a text among the bytes that come. Times are those at which
bytes were read."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

ROWS, COLUMNS = 40, 120
# What the last of the questions at the start is, and what a usual terminal answers to all of them.
LAST_QUESTION = b"\x1b[c"
ANSWERS = b"\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[?2026;2$y\x1b[?62;22c"
# The title of the window while nothing runs; while a turn does, a mark stands before the name.
AT_REST = b"\x1b]2;gnoma"
PROMPT = "› ".encode()
READ_BYTES = 1 << 16
# As much of what came before is kept as a text that is waited for may begin in.
KEPT_BYTES = 256
PATIENCE_SECONDS = 120


class Person:
    def __init__(self, command, place):
        self.shown = b""
        self.bytes_shown = 0
        self.read_at = 0.0
        self.began = time.time()
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            os.chdir(place.project)
            os.execve(command[0], command, {**place.env, "TERM": "xterm-256color", "COLORTERM": "truecolor"})

    def types(self, text):
        """Types; the time just before."""
        now = time.time()
        os.write(self.terminal, text.encode())
        return now

    def reads(self, seconds):
        """Takes in what comes next, if anything comes within so many seconds."""
        ready, _, _ = select.select([self.terminal], [], [], max(0.0, seconds))
        if not ready:
            return
        data = os.read(self.terminal, READ_BYTES)
        self.read_at = time.time()
        self.bytes_shown += len(data)
        new = self.shown[-len(LAST_QUESTION) + 1 :] + data
        self.shown += data
        if LAST_QUESTION in new:
            os.write(self.terminal, ANSWERS)

    def forgets(self):
        """What was shown until now is not what is waited for next."""
        self.shown = b""

    def waits_for(self, text):
        """The time at which `text` was there; what comes behind it is waited for next."""
        end = time.time() + PATIENCE_SECONDS
        while text not in self.shown:
            if time.time() > end:
                raise SystemExit(f"{text!r} did not come; the last was {self.shown!r}")
            self.shown = self.shown[-KEPT_BYTES:]
            self.reads(end - time.time())
        self.shown = self.shown.split(text, 1)[1]
        return self.read_at

    def rests(self, seconds):
        end = time.time() + seconds
        while time.time() < end:
            self.reads(end - time.time())
        self.forgets()

    def says(self, text):
        """Sends a message and waits for the end of its turn; when Enter was pressed, and when it ended."""
        os.write(self.terminal, text.encode())
        self.forgets()
        sent = self.types("\r")
        self.waits_for("●".encode())
        return sent, self.waits_for(AT_REST)

    def leaves(self):
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)
