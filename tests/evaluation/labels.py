"""Made labels: names, versions, quantities, expressions and addresses, each with other ways to
write it and with labels that differ from it in a digit, an operator, the case of a unit, or a
letter whose case counts."""

# ruff: noqa: SIM905 - words in one string are easier to read

import random
from collections.abc import Callable
from typing import NamedTuple

WORDS = (
    "server node worker plan task ticket cluster bucket queue shard rack gateway build release "
    "stage "
    "colour catalogue centre model batch sensor motor invoice contract patient sample station order"
).split()
AMERICAN = {"colour": "color", "catalogue": "catalog", "centre": "center"}
SHORT = "mw db vm ap eu us hr qa ci api etl gpu tpu ssd nfs vpn lan iot".split()


class Label(NamedTuple):
    """A label, `variants` that name the same, and `changed` ones that must not be called the
    same."""

    text: str
    variants: list[str]
    changed: list[str]


def other_number(rng: random.Random, number: str) -> str:
    """A number with another digit, two digits exchanged, or one digit more or less."""
    at = rng.randrange(len(number))
    ways = [
        number[:at] + str((int(number[at]) + rng.randint(1, 9)) % 10) + number[at + 1 :],
        number + str(rng.randint(0, 9)),
        number[:at] + number[at + 1 : at + 2] + number[at] + number[at + 2 :],
        number[:at] + number[at + 1 :],
        f"0{number}",
    ]
    return next(way for way in rng.sample(ways, len(ways)) if way and way != number)


def identifier(rng: random.Random) -> Label:
    """mw-3, rack-12-b, a-17-086."""
    head = rng.choice([*WORDS, *SHORT, *"abcxz"])
    numbers = [
        str(rng.randint(1, rng.choice((9, 99, 2030)))) for _ in range(rng.choice((1, 1, 2, 3)))
    ]
    if len(head) == 1 and len(numbers) == 1:
        numbers.append(str(rng.randint(100, 999)))
    if rng.random() < 0.2:
        numbers[-1] = numbers[-1].zfill(4)
    tail = rng.sample(WORDS, 1) if rng.random() < 0.3 else []
    parts = [head, *numbers, *tail]
    text = "-".join(parts)
    variants = [
        "_".join(parts),
        " ".join(parts),
        text.upper(),
        "-".join([head.capitalize(), *parts[1:]]),
    ]
    if head in WORDS:
        variants.append("-".join([f"{head}{'es' if head[-1] in 'sh' else 's'}", *parts[1:]]))
    if head in AMERICAN:
        variants.append("-".join([AMERICAN[head], *parts[1:]]))
    at = rng.randrange(len(numbers))
    others = [*numbers]
    others[at] = other_number(rng, numbers[at])
    changed = ["-".join([head, *others, *tail]), "_".join([head, *others, *tail]).upper()]
    if len(set(numbers)) > 1 and numbers != numbers[::-1]:
        changed.append("-".join([head, *numbers[::-1], *tail]))
    changed += [
        "-".join([head, *numbers[:-1], f"{numbers[-1]}{tail_letter}", *tail])
        for tail_letter in "bx"
    ]
    return Label(text, variants, changed)


def version(rng: random.Random) -> Label:
    """v1.2.3, langfuse:3.224.4, release 2.0-rc1."""
    numbers = [
        str(rng.randint(0, rng.choice((3, 12, 300)))) for _ in range(rng.choice((2, 3, 3, 4)))
    ]
    dotted = ".".join(numbers)
    name = rng.choice(["", *SHORT, *WORDS])
    joint = rng.choice(":-@ ") if name else ""
    end = rng.choice(("", "", "", "-rc1", "-beta2", "+build7"))
    text = f"{name}{joint}{'v' * (rng.random() < 0.3)}{dotted}{end}"
    variants = [text.upper(), text.capitalize()]
    if "v" in text.removeprefix(name) and not name:
        variants += [text.replace("v", "V"), text.replace("v", "version ", 1)]
    if joint == "-" and not end:
        variants += [text.replace("-", " "), text.replace("-", "_")]
    at = rng.randrange(len(numbers))
    others = [*numbers]
    others[at] = other_number(rng, numbers[at])
    changed = [
        text.replace(dotted, ".".join(others)),
        text.replace(dotted, f"{dotted}.0"),
        f"{text}.1",
    ]
    changed.append(text.replace(dotted, numbers[0] + ".".join(numbers[1:])))
    changed += [text.replace(end, f"{end}1"), text.removesuffix(end)] if end else [f"{text}-rc2"]
    return Label(text, variants, changed)


def numeric_range(rng: random.Random) -> Label:
    """plan-2023-2024, pages 10-20, 5-10 kg."""
    low = rng.randint(1, 2020)
    high = low + rng.randint(1, 60)
    head = rng.choice(("pages", "plan", "rooms", "season", "lines", "budget"))
    if rng.random() < 0.5:
        text = f"{head}-{low}-{high}"
        variants = [f"{head}_{low}_{high}", f"{head} {low}-{high}", f"{head.upper()}-{low}-{high}"]
    else:
        text = f"{head} {low}-{high}"
        variants = [
            f"{head} {low}–{high}",
            f"{head.capitalize()} {low}-{high}",
            f"{head} {low} to {high}",
        ]
    changed = [
        text.replace(f"{low}-{high}", both)
        for both in (
            f"{low}-{other_number(rng, str(high))}",
            f"{other_number(rng, str(low))}-{high}",
            f"{high}-{low}",
            f"{low}{high}",
            f"{low}",
            f"{low}.{high}",
            f"{low}/{high}",
        )
    ]
    return Label(text, variants, changed)


CASED_UNITS = (
    "mW/MW Mb/MB Gb/GB kB/KB Kg/kg mA/MA pA/Pa kW/KW MHz/mHz ms/Ms Nm/nm mm/Mm kb/kB Wh/wh MPa/mPa"
).split()


def unit(rng: random.Random) -> Label:
    """5 kW, 100Mb/s, Kg."""
    one, other = rng.sample(rng.choice(CASED_UNITS).split("/"), 2)
    rate = rng.choice(("", "", "/s"))
    name = rng.choice(("", "", f"{rng.choice(WORDS)} "))
    number = rng.choice((str(rng.randint(1, 900)), f"{rng.randint(1, 9)}.{rng.randint(1, 9)}"))
    if not name and rng.random() < 0.1:
        return Label(f"{one}{rate}", [], [f"{other}{rate}"])
    text = f"{name}{number} {one}{rate}"
    variants = [f"{name}{number}{one}{rate}", f"{name.capitalize()}{number} {one}{rate}"]
    changed = (
        [f"{name}{number} {other}{rate}", f"{name}{number}{other}{rate}"]
        if len(name.split()) + 1 < 3
        else []
    )
    changed += [
        f"{name}{other_number(rng, number.replace('.', ''))} {one}{rate}",
        f"{name}-{number} {one}{rate}",
    ]
    return Label(text, variants, changed)


OPERATORS = (">=", "<=", ">", "<", "==", "!=", "=", "+", "-", "*", "/", "%", "^", "&&", "||")


def expression(rng: random.Random) -> Label:
    """x >= 3, a && b."""
    left = rng.choice(("x", "y", "n", "size", "count", "f(x)", "a[0]", "max_heads", "i"))
    right = rng.choice((str(rng.randint(1, 400)), "z", "limit", f"-{rng.randint(1, 9)}"))
    sign = rng.choice(OPERATORS)
    text = f"{left} {sign} {right}"
    variants = [f"  {text} "]
    if sign in (">=", "<=", "==", "!=", "=", "<", ">", "&&", "||"):
        variants.append(f"{left}{sign}{right}")
    variants += [
        text.replace(a, b) for a, b in ((">=", "≥"), ("<=", "≤"), ("!=", "≠")) if a in text
    ]
    changed = [f"{left} {other} {right}" for other in rng.sample(OPERATORS, 5) if other != sign]
    changed += [f"{left}{other}{right}" for other in rng.sample(OPERATORS, 5) if other != sign]
    changed.append(f"{right} {sign} {left}")
    if right.isdigit():
        changed += [
            f"{left} {sign} {other_number(rng, right)}",
            f"{left} {sign} -{right}",
            f"!{left} {sign} {right}",
        ]
    return Label(text, variants, changed)


MONTHS = (
    "January February March April May June July August September October November December".split()
)


def date(rng: random.Random) -> Label:
    """2024-05-03, 3 May 2024, standup-2024-05-03, Q3 2024."""
    year, month, day = rng.randint(1990, 2030), rng.randint(1, 12), rng.randint(1, 28)
    name = MONTHS[month - 1]
    iso = f"{year}-{month:02}-{day:02}"
    others = [
        (year, month, day % 28 + 1),
        (year, month % 12 + 1, day),
        (year + 1, month, day),
    ]
    if month != day and day <= 12:
        others.append((year, day, month))
    sort = rng.randrange(4)
    if sort == 0:
        variants = [
            f"{day} {name} {year}",
            f"{name} {day}, {year}",
            f"{day} {name[:3]} {year}",
            f" {iso}",
        ]
        return Label(iso, variants, [f"{y}-{m:02}-{d:02}" for y, m, d in others])
    if sort == 1:
        text = f"{day} {name} {year}"
        variants = [iso, text.lower(), text.upper(), f"{name} {day} {year}"]
        return Label(text, variants, [f"{d} {MONTHS[m - 1]} {y}" for y, m, d in others])
    if sort == 2:
        head = rng.choice(WORDS)
        text = f"{head}-{iso}"
        variants = [
            f"{head}_{iso}",
            f"{head} {iso}",
            text.upper(),
            f"{head}_{iso.replace('-', '_')}",
        ]
        return Label(text, variants, [f"{head}-{y}-{m:02}-{d:02}" for y, m, d in others])
    quarter = rng.randint(1, 4)
    text = f"Q{quarter} {year}"
    variants = [text.lower(), f"Q{quarter}-{year}", f"q{quarter}_{year}"]
    return Label(
        text,
        variants,
        [f"Q{quarter % 4 + 1} {year}", f"Q{quarter} {year + 1}", f"H{quarter} {year}"],
    )


def option(rng: random.Random) -> Label:
    """--max-heads, -d, --batch-size 32."""
    if rng.random() < 0.2:
        letter = rng.choice("abcdefgknopqrstvx")
        return Label(
            f"-{letter}", [f" -{letter}"], [f"-{letter.upper()}", f"--{letter}{letter}", letter]
        )
    words = rng.sample([*WORDS, "max", "min", "no", "dry", "run", "size"], rng.choice((2, 2, 3)))
    value = rng.choice(("", "", f" {rng.randint(1, 512)}", f"={rng.randint(1, 512)}"))
    text = f"--{'-'.join(words)}{value}"
    changed = [
        f"-{'-'.join(words)}{value}",
        f"--{'-'.join(words[:-1])}{value}",
        f"--no-{'-'.join(words)}{value}",
    ]
    if value:
        changed.append(f"--{'-'.join(words)}{value[0]}{other_number(rng, value[1:])}")
        changed.append(f"--{'-'.join(words)}{value[0]}-{value[1:]}")
    variants = [f"{text} "] if "=" in value else [f"--{'_'.join(words)}{value}", f" {text}"]
    return Label(text, variants, changed)


def path(rng: random.Random) -> Label:
    """/usr/lib/x-2, src/main_3.py, C:\\data\\run1."""
    number = str(rng.randint(1, 99))
    folders = rng.sample(WORDS, rng.choice((1, 2, 3)))
    sign = rng.choice("///\\")
    begin = rng.choice((sign, "", f".{sign}", f"~{sign}"))
    ending = rng.choice((".py", ".json", ".tar.gz", ""))
    file = f"{rng.choice(SHORT)}{rng.choice('-_')}{number}{ending}"
    text = f"{begin}{sign.join([*folders, file])}"
    other = file.replace(number, other_number(rng, number), 1)
    changed = [
        f"{begin}{sign.join([*folders, other])}",
        f"{sign}{sign}{text}",
        f"{text}{sign}x",
        f"{begin}{sign.join([*folders, 'old', file])}",
        f"{begin}{sign.join([*folders, file.replace('-', '+').replace('_', '-')])}",
    ]
    if begin or ending or len(folders) > 1:  # "etl/mw-3" and "ETL/MW-3" may be names
        changed.append(f"{begin}{sign.join([*folders, file.upper()])}")
    return Label(text, [f" {text}", f"{text} "], changed)


def address(rng: random.Random) -> Label:
    """ann.lee7@mail.example, https://host.example:8080/v2/items?id=5."""
    host = f"{rng.choice(WORDS)}{rng.choice(('', '-2', '7'))}.{rng.choice(('com', 'org', 'io', 'example'))}"  # noqa: E501
    number = str(rng.randint(1, 9999))
    if rng.random() < 0.4:
        user = f"{rng.choice(WORDS)}{rng.choice('._-')}{rng.choice(SHORT)}"
        text = f"{user}{number}@{host}"
        changed = [
            f"{user}{other_number(rng, number)}@{host}",
            f"{user}@{host}",
            f"{user}+{number}@{host}",
        ]
        changed += (
            [f"{user.replace('.', '-')}{number}@{host}"]
            if "." in user
            else [f"{user[1:]}{number}@{host}"]
        )
        return Label(
            text, [text.upper(), text.capitalize(), f"{user}{number}@{host.capitalize()}"], changed
        )
    tail = f"/{rng.choice(WORDS)}/{number}{rng.choice(('', '?id=5', '#top'))}"
    text = f"https://{host}{tail}"
    changed = [
        f"http://{host}{tail}",
        f"https://{host}{tail.replace(number, other_number(rng, number), 1)}",
        f"https://{host}:8080{tail}",
        f"https://{host}{tail}&x=1",
        f"https://{host}{tail.upper()}",
        f"https://www2.{host}{tail}",
    ]
    return Label(
        text, [f"https://{host.upper()}{tail}", f"HTTPS://{host}{tail}", f"{text} "], changed
    )


def code_name(rng: random.Random) -> Label:
    """maxHeads, batch_size_2, GPT-4o, H2O: other ways to write names in code, and digests."""
    if rng.random() < 0.3:
        digest = f"{rng.getrandbits(rng.choice((32, 64, 128))):08x}"
        at = rng.randrange(len(digest))
        other = (
            digest[:at]
            + rng.choice([c for c in "0123456789abcdef" if c != digest[at]])
            + digest[at + 1 :]
        )
        return Label(digest, [f" {digest}", digest.upper()], [other, digest[:-1], f"{digest}0"])
    words = rng.sample([*WORDS, "max", "size", "first", "open"], rng.choice((2, 3)))
    number = str(rng.randint(1, 40))
    camel = words[0] + "".join(word.capitalize() for word in words[1:])
    snake = "_".join(words)
    other = other_number(rng, number)
    if rng.random() < 0.5:
        return Label(
            camel,
            [snake, "-".join(words), camel[:1].upper() + camel[1:]],
            [f"{camel}2", f"{camel}{number}"],
        )
    return Label(
        f"{snake}_{number}",
        [f"{'-'.join(words)}-{number}", f"{snake}_{number}".upper(), f"{' '.join(words)} {number}"],
        [f"{snake}_{other}", f"{snake}{other}", snake, f"{snake}_{number}_{number}"],
    )


Maker = Callable[[random.Random], Label]

CHOSEN_ON: tuple[Maker, ...] = (identifier, version, numeric_range, unit, expression)
"""Kinds of labels by which the guard's rules were chosen."""

HELD_OUT: tuple[Maker, ...] = (date, option, path, address, code_name)
"""Kinds that chose no rule."""


def labels(makers: tuple[Maker, ...], count: int, seed: int) -> list[Label]:
    """So many labels, of each kind as many."""
    rng = random.Random(seed)
    return [makers[k % len(makers)](rng) for k in range(count)]
