"""A server of sessions and a client of it: one JSON object a line over a Unix socket."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time

PATIENCE_SECONDS = 60
READ_BYTES = 1 << 16
# As much waits in a client's own queue at most; what comes beyond is not what is waited for.
KEPT_MESSAGES = 1_000


class Served:
    """`gnoma serve`, until it is stopped."""

    def __init__(self, programs, place, folder):
        self.place, self.runtime = place, f"{folder}/run"
        os.makedirs(self.runtime, mode=0o700, exist_ok=True)
        self.env = {**place.env, "XDG_RUNTIME_DIR": self.runtime}
        self.socket = f"{self.runtime}/gnoma/server.sock"
        command = [f"{programs}/gnoma", "serve"]
        self.process = subprocess.Popen(command, env=self.env, cwd="/", stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        line = self.process.stderr.readline()
        if "server.sock" not in line:
            raise SystemExit(f"the server does not start: {line}")

    def ends(self, number=signal.SIGKILL):
        """Ends it; what it said."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)
        said = self.process.stderr.read()
        self.process.wait()
        return said


class Client:
    """A connection. It reads only while it waits for something."""

    def __init__(self, served, name="bench"):
        self.served, self.last, self.rest = served, 0, b""
        self.messages = []
        self.stream = socket.socket(socket.AF_UNIX)
        self.stream.settimeout(PATIENCE_SECONDS)
        self.stream.connect(served.socket)
        self.write({"version": 1, "program": "bench", "client": f"{name} {os.getpid()} {time.time()}"})
        self.next()

    def write(self, message):
        self.stream.sendall(json.dumps(message).encode() + b"\n")

    def next(self):
        while b"\n" not in self.rest:
            data = self.stream.recv(READ_BYTES)
            if not data:
                raise EOFError("the server has closed the connection")
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def put(self, request, session=None):
        """Asks, and does not wait for the reply."""
        self.last += 1
        message = {"id": self.last, "request": request}
        self.write({**message, "session": session} if session else message)
        return self.last

    def ask(self, request, session=None):
        """What the server replies; what else it says meanwhile is kept."""
        asked = self.put(request, session)
        while True:
            message = self.next()
            if message.get("reply", {}).get("id") == asked:
                result = message["reply"]["result"]
                if "Err" in result:
                    raise SystemExit(f"{request}: {result['Err']}")
                return result["Ok"]
            self.messages = [*self.messages[-KEPT_MESSAGES:], message]

    def heard(self):
        """What comes next of what is no reply."""
        return self.messages.pop(0) if self.messages else self.next()

    def attach(self, session):
        self.ask({"attach": {"from": None}}, session)

    def opens(self, start="new"):
        """Opens a session that stays; its id."""
        place = self.served.place
        spec = {"folder": place.project, "environment": self.served.env, "detach": "keep", "start": start}
        session = self.ask({"open": spec})["opened"]["session"]
        return session

    def send(self, session, text):
        self.ask({"send": {"content": [{"text": {"text": text}}]}}, session)

    def waits_for_end(self, sessions):
        """Reads until a turn of each of these sessions has ended; the events by session."""
        left, events = set(sessions), {session: [] for session in sessions}
        while left:
            message = self.heard()
            envelope = message.get("event")
            if not envelope or envelope["session"] not in events:
                continue
            events[envelope["session"]].append(envelope["event"])
            if envelope["event"] == {"state": "idle"}:
                left.discard(envelope["session"])
        return events

    def says(self, session, text):
        """Sends and waits for the end of the turn; the client is attached."""
        self.messages = []
        self.send(session, text)
        return self.waits_for_end([session])[session]

    def history(self, session):
        """All messages of the conversation."""
        messages, before = [], None
        while before != 0:
            page = self.ask({"history": {"before": before, "max": 100}}, session)["history"]
            messages = [*page["messages"], *messages]
            if page["first"] == before:
                break
            before = page["first"]
        return messages

    def leaves(self):
        self.stream.close()
