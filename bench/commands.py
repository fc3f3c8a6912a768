"""Sessions of gnoma in turns, one without a sandbox and one in it, whose model wants commands run."""

import json
import os
import re
import socket
import subprocess
import threading
import time

from common import CONFIG, WIDE_WINDOW_TOKENS

# A model thinks between two commands; what gets ready meanwhile costs nobody anything.
PAUSE_SECONDS = 0.05
TIMEOUT_SECONDS = 600


class Model(threading.Thread):
    """A model that wants one command after the other, each of a kind, and notes how long its round takes: from the last
    byte of its answer to the first of the next request. Only one of several models answers at a time; `prepare` is
    called before."""

    def __init__(self, rounds, expected, turn, prepare=lambda kind: None):
        super().__init__(daemon=True)
        self.rounds, self.expected, self.turn, self.prepare = rounds, expected, turn, prepare
        self.times = {kind: [] for kind, _ in rounds}
        self.faults = []
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]

    def run(self):
        answered, number, held = None, 0, False
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            with client:
                data = client.recv(65536)
                came = time.perf_counter()
                body = self.rest(client, data)
                if b'"tools":[' not in body:
                    self.answer(client, {"content": "ok"}, "stop")
                    continue
                if answered is not None:
                    self.note(self.rounds[number - 1][0], (came - answered) * 1000, body)
                if held:
                    self.turn.release()
                if number == len(self.rounds):
                    self.answer(client, {"content": "done"}, "stop")
                    return
                time.sleep(PAUSE_SECONDS)
                self.turn.acquire()
                held = True
                kind, command = self.rounds[number]
                self.prepare(kind)
                arguments = json.dumps({"command": command, "timeout": TIMEOUT_SECONDS})
                function = {"name": "bash", "arguments": arguments}
                call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
                self.answer(client, {"tool_calls": [call]}, "tool_calls")
                answered = time.perf_counter()
                number += 1

    def note(self, kind, took, body):
        said = re.findall(rb'"content":"((?:[^"\\]|\\.)*)"', body)
        if not said or not self.expected.search(said[-1]):
            self.faults.append(f"{kind}: {said[-1:]}")
        self.times[kind].append(took)

    @staticmethod
    def rest(client, data):
        while b"\r\n\r\n" not in data:
            data += client.recv(65536)
        head, body = data.split(b"\r\n\r\n", 1)
        length = re.search(rb"content-length: *(\d+)", head, re.I)
        while length and len(body) < int(length.group(1)):
            body += client.recv(65536)
        return body

    @staticmethod
    def answer(client, delta, reason):
        chunks = [{"choices": [{"index": 0, "delta": delta}]}, {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}]
        text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(text)}\r\nconnection: close\r\n\r\n"
        client.sendall((head + text).encode())


SETTINGS = {"bare": '[sandbox]\nmode = "off"\n', "walled": ""}


def taken(program, place, rounds, expected, projects=None, prepare=lambda name, kind: None):
    """How long the rounds took, by session and kind. Both sessions get the same rounds, each in its project."""
    turn = threading.Lock()
    models, processes = {}, []
    for name, settings in SETTINGS.items():
        model = Model(rounds, re.compile(expected), turn, lambda kind, name=name: prepare(name, kind))
        models[name] = model
        home = f"{place.home}-{name}"
        os.makedirs(f"{home}/.config/gnoma")
        place.write(f"{home}/.config/gnoma/config.toml", CONFIG.format(port=model.port, window=WIDE_WINDOW_TOKENS) + settings)
        model.start()
        mode = "bypass" if name == "bare" else "auto"
        command = [program, "--permission", mode, "--max-turns", "2000", "go"]
        env, project = {**place.env, "HOME": home}, (projects or {}).get(name, place.project)
        nothing = subprocess.DEVNULL
        processes.append(subprocess.Popen(command, env=env, cwd=project, stdin=nothing, stdout=nothing, stderr=nothing))
    for process in processes:
        process.wait()
    faults = [fault for model in models.values() for fault in model.faults]
    if faults or any(len(model.times[kind]) != sum(kind == it for it, _ in rounds) for model in models.values() for kind in model.times):
        raise SystemExit(f"{len(faults)} commands did not do what they should: {faults[:1]}")
    return {name: model.times for name, model in models.items()}
