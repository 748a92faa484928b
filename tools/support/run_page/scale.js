// Numbers as text, and axes.

function formatNumber(value) {
  if (value === null) return '-';
  if (typeof value === 'string') return value;  // "nan", "inf", "-inf"
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) {
    return value.toExponential(3).replace(/\.?0+e/, 'e').replace('e+', 'e');
  }
  return String(Number(value.toPrecision(5)));
}

function formatDuration(seconds) {
  if (seconds < 120) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

// About `count` round numbers within [low, high].
function linearTicks(low, high, count) {
  const rough = (high - low) / count;
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
  const ticks = [];
  for (let i = Math.ceil(low / step); i * step <= high && ticks.length < 50; ++i) {
    ticks.push(Number((i * step).toPrecision(12)));
  }
  return ticks;
}

// Powers of ten within [low, high], at most about `count` of them; where there is hardly one, round
// numbers.
function logarithmicTicks(low, high, count) {
  const first = Math.ceil(Math.log10(low)), last = Math.floor(Math.log10(high));
  if (last - first < 1) return linearTicks(low, high, count).filter((tick) => tick > 0);
  const every = Math.ceil((last - first + 1) / count);
  const ticks = [];
  for (let power = first; power <= last; power += every) ticks.push(10 ** power);
  return ticks;
}

// Where values lie between `from` and `to`, pixels. A range of one value gets some room.
class Axis {
  constructor(low, high, from, to, logarithmic) {
    this.logarithmic = logarithmic && low > 0;
    if (low === high) {
      const room = Math.abs(low) / 10 || 1;
      low = this.logarithmic ? low / 2 : low - room;
      high = this.logarithmic ? high * 2 : high + room;
    }
    Object.assign(this, {low, high, from, to});
  }

  at(value) {
    const map = this.logarithmic ? Math.log10 : (x) => x;
    // In two steps: the difference of two f32 may be as large as an f64 holds easily.
    const share = (map(value) - map(this.low)) / (map(this.high) - map(this.low));
    return this.from + share * (this.to - this.from);
  }

  ticks(count) {
    const make = this.logarithmic ? logarithmicTicks : linearTicks;
    return make(this.low, this.high, count);
  }
}

// Averages over the past with the given weight, as TensorBoard has them; values that are no numbers
// are passed on.
function smooth(values, weight) {
  let sum = 0, norm = 0;
  return values.map((value) => {
    if (typeof value !== 'number') return value;
    sum = sum * weight + (1 - weight) * value;
    norm = norm * weight + (1 - weight);
    return sum / norm;
  });
}

// Of values that are numbers; null if there is none.
function rangeOf(lists, accept) {
  let low = Infinity, high = -Infinity;
  for (const list of lists) {
    for (const value of list) {
      if (typeof value !== 'number' || !accept(value)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  return low <= high ? [low, high] : null;
}
