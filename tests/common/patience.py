"""How long scripts wait before they call something late: TEST_PATIENCE=n, n times as long, as for tests (patience.hpp)."""
import os


def patient(seconds):
    return seconds * int(os.environ.get("TEST_PATIENCE") or 1)
