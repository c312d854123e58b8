// Scales of figures: from numbers to places, and the round numbers that an axis names.
const scales = (() => {
  const LEAST_PIXELS = 34; // so far apart are labels at least

  function scale([low, high], [from, to], logarithmic) {
    const forth = logarithmic ? Math.log : (value) => value;
    const [a, b] = [forth(low), forth(high)];
    const at = (value) => from + ((forth(value) - a) / (b - a || 1)) * (to - from);
    const room = Math.max(2, Math.floor(Math.abs(to - from) / LEAST_PIXELS));
    const ticks = logarithmic ? logarithmicTicks(low, high, room) : evenTicks(low, high, room);
    return { at, ticks };
  }

  function evenTicks(low, high, room) {
    const rough = (high - low) / Math.min(room, 6);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((digit) => digit * power >= rough);
    const first = Math.ceil(low / step - 1e-9);
    const count = Math.floor(high / step + 1e-9) - first + 1;
    return Array.from({ length: count }, (_, index) => Number(((first + index) * step).toPrecision(12)));
  }

  function logarithmicTicks(low, high, room) {
    const found = (digits) => {
      const ticks = [];
      for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
        for (const digit of digits) {
          const value = Number((digit * 10 ** power).toPrecision(12));
          if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) ticks.push(value);
        }
      }
      return ticks;
    };
    const choices = [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 5], [1, 3], [1]].map(found);
    const fitting = choices.find((ticks) => ticks.length <= Math.min(room, 7));
    if (high / low < 5) return evenTicks(low, high, room);
    return fitting && fitting.length > 1 ? fitting : choices[3];
  }

  // The ends of an axis: all values with some room; a plain axis of positive numbers begins at 0.
  function limits(values, logarithmic) {
    const known = values.filter((value) => value !== null && (!logarithmic || value > 0));
    let [low, high] = known.length ? known.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]) : [0, 1];
    if (logarithmic) {
      const room = Math.max((high / low) ** 0.06, 1.04);
      return [low / room, high * room];
    }
    if (low > 0) low = 0;
    const room = (high - low || 1) * 0.06;
    return [low === 0 ? 0 : low - room, high + room];
  }

  const shown = (value) => {
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential().replace("e+", "e");
    return Number(value.toPrecision(6)).toString().replace("-", "\u2212");
  };

  return { scale, limits, shown };
})();
