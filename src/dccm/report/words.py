"""Numbers as the page writes them; what is no number is a dash."""

import math
from collections.abc import Sequence


def number_of(value: object) -> float:
    """The value as a float; not a number when it is anything else."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


def number_text(value: object) -> str:
    """A number with as many digits as tell something."""
    number = number_of(value)
    if not math.isfinite(number):
        return "–"
    return f"{number:,.0f}" if number == int(number) or abs(number) >= 1000 else f"{number:,.1f}"


def decimal_text(value: float, digits: int = 3) -> str:
    """A number with so many digits behind the point."""
    return f"{value:.{digits}f}" if math.isfinite(value) else "–"


def percent_text(share: float) -> str:
    """A share of one in per cent."""
    return f"{100 * share:.1f} %"


def duration_text(seconds: float) -> str:
    """Seconds, minutes or hours."""
    if not math.isfinite(seconds):
        return "–"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def amount(count: int, one: str, many: str) -> str:
    """How many of something, in the right form: `1 file was`, `2 files were`."""
    return f"{count:,} {one if count == 1 else many}"


def listed(words: Sequence[str]) -> str:
    """Words in a row: `3`, `3 and 5`, `3, 5 and 7`."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
