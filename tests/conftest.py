"""What all tests share: one deterministic hypothesis profile and the golden-file fixture.

``pytest --update-golden`` rewrites every golden file a test compares with; look at the difference before committing it.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

GOLDEN = Path(__file__).parent / "golden"

settings.register_profile(
    "deterministic",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=25,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("deterministic")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite tests/golden/ from what the code says now, instead of comparing with it",
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """A function ``golden(name, text)``: the text must equal tests/golden/<name>."""
    update = bool(request.config.getoption("--update-golden"))

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.is_file(), f"tests/golden/{name} does not exist; write it with: pytest --update-golden"
        assert text == path.read_text(encoding="utf-8")

    return compare
