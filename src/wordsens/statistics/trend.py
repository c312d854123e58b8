"""The change of a number with the length of the text, said no more surely than its interval allows."""

from dataclasses import dataclass

from wordsens.statistics.power_law import PowerLaw

ROOT = -0.5
"""The exponent of 1/sqrt(n), at which a fully connected layer's sensitivity falls."""

NEAR = 0.02
"""Exponents so near to each other differ by less than 5 % when a text becomes ten times as long."""

BOOTSTRAP, STUDENT = "95 % interval, bootstrap over texts", "95 % interval, Student's t of the fit"


@dataclass(frozen=True)
class Trend:
    """A power law n^exponent with an interval.

    Attributes:
        exponent, low, high: of n.
        how: BOOTSTRAP where there are five texts or more, else STUDENT.
    """

    exponent: float
    low: float
    high: float
    how: str

    @classmethod
    def of(cls, law: PowerLaw | None, interval: tuple[float, float] | None) -> "Trend | None":
        """The trend of a fit; None without one."""
        if law is None:
            return None
        if interval is not None:
            return cls(law.exponent, *interval, BOOTSTRAP)
        return cls(law.exponent, *law.interval, STUDENT)

    @property
    def behaviour(self) -> str:
        """The most that the interval allows to say.

        >>> Trend(-0.51, -0.54, -0.48, BOOTSTRAP).behaviour, Trend(-0.02, -0.1, 0.06, BOOTSTRAP).behaviour
        ('falls about as 1/√n', 'shows no trend')
        """
        if self.low > -NEAR and self.high < NEAR:
            return "hardly changes"
        if self.low <= 0 <= self.high:
            return "shows no trend"
        if self.low > 0:
            return "grows"
        if self.low > ROOT - NEAR and self.high < ROOT + NEAR:
            return "falls as 1/√n"
        if self.low <= ROOT <= self.high:
            return "falls about as 1/√n" if self.high - self.low < -ROOT / 2 else "falls"
        return "falls, but slower than 1/√n" if self.low > ROOT else "falls faster than 1/√n"

    @property
    def text(self) -> str:
        """The exponent with its interval."""
        text = f"exponent {self.exponent:.2f} (95 % CI {self.low:.2f} to {self.high:.2f})"
        return text.replace("-", "\N{MINUS SIGN}")
