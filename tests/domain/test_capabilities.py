"""Capabilities: what satisfies what."""

import pytest

from agent_console.domain.capabilities import normal_capabilities, satisfies, unmet


@pytest.mark.rule("R000-34", "R000-35", "R000-36")
@pytest.mark.parametrize(
    ("capability", "demand", "expected"),
    [
        ("local_filesystem", "local_filesystem", True),
        ("local_filesystem", "local", False),
        ("tool:photostats:1.2.3", "tool:photostats:1.2.3", True),
        ("tool:photostats:1.2.3", "tool:photostats", True),
        ("tool:photostats:1.2.3", "tool:photo", False),
        ("tool:photostats:1.2.3", "tool:photostats:1.2", False),
        ("tool:photostats", "tool:photostats:1.2.3", False),
        ("tool:photostats:", "tool:photostats", False),
        ("photostats:1.2.3", "tool:photostats", False),
        ("connector:con_01h455vb4pex5vsknk084sn02q", "connector:con_01h455vb4pex5vsknk084sn02q", True),
        ("connector:con_01h455vb4pex5vsknk084sn02q", "connector", False),
    ],
)
def test_what_satisfies_what(capability: str, demand: str, expected: bool) -> None:
    assert satisfies(capability, demand) is expected


@pytest.mark.rule("R001-11")
def test_capabilities_are_trimmed_distinct_and_ordered() -> None:
    assert normal_capabilities([" git ", "b", "git", "a"]) == ("a", "b", "git")
    assert normal_capabilities(["x" * 200]) == ("x" * 200,)
    for wrong in ("", "   ", "x" * 201):
        with pytest.raises(ValueError, match="capability"):
            normal_capabilities(["ok", wrong])


def test_what_is_missing_is_named() -> None:
    assert unmet(("tool:x", "gpu", "disk"), ("tool:x:2", "disk")) == ("gpu",)
    assert unmet((), ()) == ()
