import pytest

from tests.server.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()
