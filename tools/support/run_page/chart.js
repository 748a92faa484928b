// A chart: curves of one name over the steps, those of "train/loss" and "test/loss" together.

const LEFT = 62, RIGHT = 10, TOP = 8, BOTTOM = 20;
const COLOURS = 6;

// The index of the last of the rising `steps` that is not above `step`; -1 if all are.
function indexAt(steps, step) {
  let low = 0, high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] <= step) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

class Chart {
  // `curves`: those of the chart. `run`: first and last step, skipped steps.
  constructor(name, curves, run, onPoint) {
    Object.assign(this, {name, curves, run});
    this.figure = html('figure', {}, byId('charts'));
    const caption = html('figcaption', {}, this.figure);
    html('b', {}, caption, name);
    const legend = html('ul', {className: 'legend'}, caption);
    this.readings = curves.map((curve, i) => {
      const item = html('li', {}, legend, curve.group ? `${curve.group} ` : '');
      item.style.setProperty('--series', `var(--series-${i % COLOURS})`);
      return html('span', {}, item);
    });
    this.at = html('span', {className: 'at'}, caption);
    this.svg = svg('svg', {role: 'img', 'aria-label': name}, this.figure);
    const point = (event) => {
      const place = this.svg.getBoundingClientRect();
      onPoint(this.stepAt(event.clientX - place.left));
    };
    this.svg.addEventListener('pointermove', point);
    this.svg.addEventListener('pointerdown', point);
    this.svg.addEventListener('pointerleave', () => onPoint(null));
  }

  stepAt(x) {
    const {low, high, from, to} = this.x;
    const share = Math.min(1, Math.max(0, (x - from) / (to - from)));
    return Math.round(low + share * (high - low));
  }

  draw({smoothing, logarithmic: asked}) {
    const logarithmic = asked || this.name === 'scale';  // which is doubled and halved
    const width = this.svg.clientWidth || 400, height = this.svg.clientHeight || 190;
    this.svg.replaceChildren();
    const shown = this.curves.map(
        (curve) => smoothing > 0 ? smooth(curve.values, smoothing) : curve.values);
    const range = rangeOf(this.curves.map((curve) => curve.values),
                          (value) => !logarithmic || value > 0) || [0, 1];
    const room = logarithmic ? 0 : (range[1] - range[0]) * 0.04;
    this.x = new Axis(this.run.firstStep, this.run.lastStep, LEFT, width - RIGHT, false);
    this.y = new Axis(range[0] - room, range[1] + room, height - BOTTOM, TOP, logarithmic);
    this.drawAxes(width, height);
    this.drawSkips(height);
    this.curves.forEach((curve, i) => {
      if (smoothing > 0) this.drawCurve(curve, curve.values, i, 'curve raw');
      this.drawCurve(curve, shown[i], i, 'curve');
      this.drawOdd(curve, i);
    });
    this.cursor = svg('path', {class: 'cursor', visibility: 'hidden'}, this.svg);
    this.point(null);
  }

  drawAxes(width, height) {
    for (const tick of this.y.ticks(4)) {
      const y = this.y.at(tick);
      svg('path', {class: 'grid', d: `M${LEFT},${y}H${width - RIGHT}`}, this.svg);
      svg('text', {x: LEFT - 5, y: y + 3, 'text-anchor': 'end'}, this.svg, formatNumber(tick));
    }
    for (const tick of this.x.ticks(Math.max(2, (width - LEFT) / 65))) {
      if (tick !== Math.round(tick)) continue;
      const x = this.x.at(tick);
      svg('path', {class: 'axis', d: `M${x},${height - BOTTOM}v3`}, this.svg);
      svg('text', {x, y: height - 6, 'text-anchor': x > width - 30 ? 'end' : 'middle'}, this.svg,
          tick >= 1e6 ? `${Number((tick / 1e6).toPrecision(6))}M` : tick.toLocaleString('en'));
    }
    svg('path', {class: 'axis', d: `M${LEFT},${TOP}V${height - BOTTOM}H${width - RIGHT}`}, this.svg);
  }

  // Over the whole height where the scale is, else at the foot.
  drawSkips(height) {
    const top = this.name === 'scale' ? TOP : height - BOTTOM - 7;
    const marks = this.run.skips.map(([, step]) => `M${this.x.at(step)},${height - BOTTOM}V${top}`);
    const className = marks.length > 200 ? 'skips many' : 'skips';
    if (marks.length) svg('path', {class: className, d: marks.join('')}, this.svg);
  }

  // A line through the values, with gaps where they are no numbers, or none that a logarithm has; a
  // dot for one that stands alone.
  drawCurve(curve, values, i, className) {
    const place = (k) => {
      const value = values[k];
      if (typeof value !== 'number' || (this.y.logarithmic && value <= 0)) return null;
      return `${this.x.at(curve.steps[k]).toFixed(1)},${this.y.at(value).toFixed(1)}`;
    };
    const style = `--series: var(--series-${i % COLOURS})`;
    let path = '', before = null;
    values.forEach((value, k) => {
      const here = place(k);
      if (here !== null) path += `${before === null ? 'M' : 'L'}${here}`;
      const alone = before === null && (k + 1 === values.length || place(k + 1) === null);
      if (here !== null && alone) {
        const [cx, cy] = here.split(',');
        svg('circle', {class: 'dot', cx, cy, r: 2.5, style}, this.svg);
      }
      before = here;
    });
    const dense = values.length > 500 ? ' dense' : '';
    svg('path', {class: className + dense, d: path, style}, this.svg);
  }

  // A cross at the upper edge for each value that is not finite.
  drawOdd(curve, i) {
    const marks = curve.steps.filter((step, k) => typeof curve.values[k] === 'string')
        .map((step) => `M${this.x.at(step) - 3},${TOP}l6,6m0,-6l-6,6`);
    if (!marks.length) return;
    svg('path', {class: 'odd', d: marks.join(''),
                 style: `--series: var(--series-${i % COLOURS})`}, this.svg);
  }

  // Shows the values at a step; of null the last ones.
  point(step) {
    this.cursor.setAttribute('visibility', step === null ? 'hidden' : 'visible');
    if (step !== null) {
      this.cursor.setAttribute('d', `M${this.x.at(step)},${this.y.from}V${this.y.to}`);
    }
    this.at.textContent = step === null ? '' : `step ${step.toLocaleString('en')}`;
    this.curves.forEach((curve, i) => {
      const k = step === null ? curve.steps.length - 1 : indexAt(curve.steps, step);
      this.readings[i].textContent = k < 0 ? '-' : formatNumber(curve.values[k]);
    });
  }
}
