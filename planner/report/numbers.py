"""Numbers and units as a person reads them."""

from __future__ import annotations

import math

from planner.words import LimitName

_UNITS = {"device": "devices", "request/s": "requests/s", "sequence": "sequences"}
_SCALES = {"W": (1e-3, "kW"), "s": (1e3, "ms")}


def figure(value: float | None, digits: int = 4) -> str:
    """Write a number with at least ``digits`` significant digits, in exponent form only from a billion and below 1e-4.

    >>> figure(56307.79), figure(0.73180), figure(50.0), figure(None), figure(1000.0), figure(0.00123456)
    ('56,308', '0.7318', '50', '–', '1,000', '0.001235')
    """
    if value is None:
        return "–"
    if value == 0:
        return "0"
    if abs(value) >= 1e9 or abs(value) < 1e-4:
        return f"{value:.{digits - 1}e}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def in_unit(value: float | None, unit: str) -> str:
    """Write an SI value in the unit that people use for it.

    >>> in_unit(50_000.0, "W"), in_unit(0.19, "s"), in_unit(8.0, "device"), in_unit(1.0, "device")
    ('50 kW', '190 ms', '8 devices', '1 device')
    """
    factor, shown = _SCALES.get(unit, (1.0, unit if value == 1 else _UNITS.get(unit, unit)))
    if value is None:
        return "–"
    return f"{figure(value * factor)} {shown}"


def signed(value: float, unit: str) -> str:
    """Write a change with its sign.

    >>> signed(-1.0, "tok/s"), signed(1000.0, "W")
    ('−1 tok/s', '+1 kW')
    """
    return ("−" if value < 0 else "+") + in_unit(abs(value), unit)


def percent(value: float | None) -> str:
    """Write a fraction as per cent.

    >>> percent(0.2237), percent(None)
    ('22.4 %', '–')
    """
    return "–" if value is None else f"{100 * value:.1f} %"


LIMIT_WORDS: dict[LimitName, str] = {
    "power_budget": "power budget",
    "cost_budget": "cost budget",
    "inventory": "inventory",
    "interactivity_floor": "interactivity floor",
    "ttft_ceiling": "TTFT ceiling",
    "demand": "demand",
    "memory": "memory",
}
