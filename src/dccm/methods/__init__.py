"""All methods by name: one method, one file."""

from dccm.methods.base import GradientMethod
from dccm.methods.dccm import DCCMMethod

METHODS: dict[str, type[GradientMethod]] = {"dccm": DCCMMethod}
