"""A proof that is told to end undoes what it has set up, and judges nothing."""

import signal
import subprocess
import sys

import pytest

from tests.support.warm_start import REPOSITORY

PROOF = """
import asyncio, contextlib, signal, sys
from bench.stopping import ends_when_told

@contextlib.contextmanager
def staged():
    try:
        yield
    finally:
        print("everything is undone", flush=True)

async def lived():
    print("ready", flush=True)
    await asyncio.sleep(600)

def waits_in_a_loop():
    with staged():
        asyncio.run(lived())
    print("judged", flush=True)
    return 0

def waits_outside():
    with staged():
        print("ready", flush=True)
        signal.pause()
    print("judged", flush=True)
    return 0

sys.exit(ends_when_told(globals()[sys.argv[1]]))
"""


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("proof", ["waits_in_a_loop", "waits_outside"])
def test_a_proof_ends_when_it_is_told_to_even_in_the_background_of_a_script(
    proof: str, told: signal.Signals
) -> None:
    # As a shell starts what ends in an ampersand: it does not hear Ctrl-C.
    deaf = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-c", PROOF, proof]
    with subprocess.Popen(
        deaf, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as started:
        try:
            assert started.stdout is not None
            assert started.stdout.readline() == "ready\n"
            started.send_signal(told)
            said, complained = started.communicate(timeout=30)
        finally:
            started.kill()

    assert (started.returncode, said) == (130, "everything is undone\n")
    assert complained == "stopped before the end: nothing was judged, docs/ is as it was\n"
