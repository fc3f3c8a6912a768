"""What the programs in this folder share: rows of the table, the model server, a home to run in, and
what Linux tells about a process."""

import contextlib
import glob
import json
import os
import queue
import sqlite3
import subprocess
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
NOTE_SECONDS = 60

CONFIG = """\
[provider]
default = "mock"
model = "mock-model"
[provider.api_keys]
mock = "${{MOCK_KEY}}"
[provider.endpoints]
mock = "http://127.0.0.1:{port}/v1"
llamacpp = "http://127.0.0.1:{port}/v1"
[provider.context]
llamacpp = 8192
mock = {window}
"""
# Large enough that no measured conversation fills it unless it is meant to.
WIDE_WINDOW_TOKENS = 1_000_000


def row(figure, goal, measured, met=None):
    verdict = "–" if met is None else "met" if met else "**missed**"
    print(f"| {figure} | {goal} | {measured} | {verdict} |", flush=True)


def built(*arguments):
    """Builds what is measured; the folder it lies in. PROGRAMS names one where everything is built already."""
    if programs := os.environ.get("PROGRAMS"):
        return os.path.abspath(programs)
    done = subprocess.run([f"{HERE}/build", *arguments], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


class Mock:
    """The model server of gnoma-bench, with one script."""

    def __init__(self, programs, *script):
        command = [f"{programs}/gnoma-bench", "mock", *map(str, script)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        self.notes = queue.SimpleQueue()
        self.listener = threading.Thread(target=self.listen, daemon=True)
        self.listener.start()

    def listen(self):
        for line in self.process.stdout:
            self.notes.put(json.loads(line))

    def note(self):
        """What it noted of the next message; waits for it. Other requests have no body."""
        while not (note := self.notes.get(timeout=NOTE_SECONDS))["bytes"]:
            pass
        return note

    def closed_at(self, since):
        """When a client first left in the middle of an answer; waits for it."""
        while (at := self.notes.get(timeout=NOTE_SECONDS).get("closed_at", 0)) < since:
            pass
        return at

    def stop(self):
        """Ends it; what it noted of each request that was not asked for yet."""
        self.process.kill()
        self.process.wait()
        self.listener.join()
        return [self.notes.get() for _ in range(self.notes.qsize())]


class Place:
    """A home, a small project and an environment of our own."""

    def __init__(self, folder):
        self.home, self.project = f"{folder}/home", f"{folder}/project"
        os.makedirs(f"{self.home}/.config/gnoma")
        os.makedirs(f"{self.project}/src")
        self.write(f"{self.project}/README.md", "# demo\n\nA small demo project.\n")
        self.write(f"{self.project}/src/main.py", "print('hello')\n")
        self.env = {
            "HOME": self.home,
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "MOCK_KEY": "sk-mock",
            "LANG": "C.UTF-8",
        }

    def configure(self, port, window=WIDE_WINDOW_TOKENS):
        self.write(f"{self.home}/.config/gnoma/config.toml", CONFIG.format(port=port, window=window))

    def stored_bytes(self):
        """What the program keeps in its databases, whatever of it still lies in their journals."""
        stored = 0
        for file in glob.glob(f"{self.home}/.local/**/*.db", recursive=True):
            with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
                (pages,), (size,) = (database.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
                stored += pages * size
        return stored

    @staticmethod
    def write(path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def memory_kb(pid, kind="Pss"):
    """Memory of a process by the kernel's account; 0 when it is gone."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            for line in file:
                if line.startswith(f"{kind}:"):
                    return int(line.split()[1])
    return 0


def cpu_seconds(pid):
    """User and system time of a process and of its children that have ended."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) / TICKS_PER_SECOND


def cpu_nanoseconds(pid):
    """What all threads of a process have had of a core, as finely as the kernel counts."""
    nanoseconds = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
            nanoseconds += int(file.read().split()[0])
    return nanoseconds


def wake_ups(pid):
    """How often each thread of a process was given a core, by the thread's name."""
    counts = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/task/{thread}/comm", encoding="utf-8") as file:
                name = file.read().strip()
            with open(f"/proc/{pid}/task/{thread}/status", encoding="ascii") as file:
                switches = [int(line.split()[1]) for line in file if "ctxt_switches" in line]
            counts[f"{name}/{thread}"] = sum(switches)
    return counts
