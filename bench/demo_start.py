"""Where the time goes until `agent-console demo` shows a living fleet, from the first start and from the second.

    python -m bench.demo_start

Seconds from exec to what a person sees, in a real pty, and the processor's seconds of each process: those are the
same on a busy machine, the others are not. A fleet lives when all twelve agents are online and a job runs.
"""

import os
import re
import sys
import time
from pathlib import Path

from bench.terminal_pty import PtyProgram
from tests.support.clusters import reachable_folder

LIVES_WITHIN = 5.0
PATIENCE = 120.0
SEEN = {
    "a frame": r"agent-console",
    "the console's own frame": r"Needs attention",
    "connected": r"✓ connected",
    "somebody online": r"online +[1-9]\d* of",
    "all online": r"online +12 of 12",
    "a job runs": r"[1-9]\d* running",
}
PROCESSES = {
    "console": "agent-console demo",
    "server, with initdb": "-m agent_console.cli.demo.server",
    "agents": "-m agent_console.demo",
}
TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(folder: Path) -> dict[str, float]:
    """Of the processes of this demo and of those they waited for, by what they are."""
    spent = dict.fromkeys(PROCESSES, 0.0)
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            environment = (process / "environ").read_bytes()
            times = (process / "stat").read_text().rpartition(")")[2].split()[11:15]
        except (OSError, UnicodeDecodeError):
            continue
        name = next((name for name, part in PROCESSES.items() if part in words), None)
        if name is not None and str(folder).encode() in environment:
            spent[name] += sum(map(int, times)) / TICKS
    return spent


def started(folder: Path) -> tuple[dict[str, float], dict[str, float]]:
    """When each was first seen, and what it cost."""
    program_file = Path(sys.executable).parent / "agent-console"
    environment = {"AGENT_CONSOLE_DATA": str(folder), "HOME": str(folder)}
    began, seen = time.perf_counter(), dict[str, float]()
    program = PtyProgram([str(program_file), "demo"], environment)
    while len(seen) < len(SEEN) and time.perf_counter() - began < PATIENCE:
        program.next_bytes(0.02)
        screen = program.screen()
        for what, pattern in SEEN.items():
            if what not in seen and re.search(pattern, screen):
                seen[what] = time.perf_counter() - began
    spent = processor_seconds(folder)
    program.press("q")
    while program.is_running:
        program.next_bytes(0.1)
    return seen, spent


def main() -> None:
    with reachable_folder(in_memory=False) as folder:
        starts = {name: started(folder) for name in ("first", "second")}
    print(f"{'seconds from exec':28}" + "".join(f"{name:>10}" for name in starts))
    for what in SEEN:
        values = (seen.get(what) for seen, _ in starts.values())
        print(f"{what:28}" + "".join("     never" if value is None else f"{value:>10.2f}" for value in values))
    print("processor seconds until then")
    for what in PROCESSES:
        print(f"{what:28}" + "".join(f"{spent[what]:>10.2f}" for _, spent in starts.values()))
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    late = [
        name for name, (seen, _) in starts.items() if max(seen.values()) > LIVES_WITHIN or len(seen) < len(SEEN)
    ]
    sys.exit(f"later than {LIVES_WITHIN:g} s: {', '.join(late)}" if late else 0)


if __name__ == "__main__":
    main()
