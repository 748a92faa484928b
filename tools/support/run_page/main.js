// Puts the page together from the data that halftone_dump wrote.

// "train/loss" is the curve "train" of the chart "loss".
function splitTag(tag) {
  const slash = tag.lastIndexOf('/');
  return {group: slash < 0 ? '' : tag.slice(0, slash), name: tag.slice(slash + 1)};
}

function chartsOf(curves) {
  const charts = new Map();
  for (const curve of curves) {
    const {group, name} = splitTag(curve.tag);
    curve.group = group;
    if (!charts.has(name)) charts.set(name, []);
    charts.get(name).push(curve);
  }
  return charts;
}

function plural(count, word) {
  return `${count.toLocaleString('en')} ${word}${count === 1 ? '' : 's'}`;
}

function describe(run) {
  if (!run.curves.length) return 'no numbers yet';
  const parts = [`steps ${run.firstStep.toLocaleString('en')} to ${run.lastStep.toLocaleString('en')}`];
  if (run.seconds > 0) parts.push(formatDuration(run.seconds));
  if (run.skippedCount) parts.push(`${plural(run.skippedCount, 'step')} skipped`);
  const start = new Date(run.started * 1000);
  if (Number.isFinite(start.getTime())) parts.push(`from ${start.toLocaleString()}`);
  return parts.join(' \u00b7 ');
}

function showTable(curves) {
  const head = html('tr', {}, html('thead', {}, byId('table')));
  const titles = ['name', 'values', 'first', 'least', 'greatest', 'last'];
  titles.forEach((title, i) => html('th', {className: i ? 'number' : ''}, head, title));
  const body = html('tbody', {}, byId('table'));
  for (const curve of curves) {
    const row = html('tr', {}, body);
    html('td', {}, row, curve.tag);
    html('td', {className: 'number'}, row, curve.count.toLocaleString('en'));
    for (const value of [curve.values[0], curve.least, curve.greatest, curve.values.at(-1)]) {
      html('td', {className: 'number'}, row, formatNumber(value));
    }
  }
}

function start() {
  const run = JSON.parse(byId('data').textContent);
  document.title = run.title;
  byId('title').textContent = run.title;
  byId('size').textContent = describe(run);
  byId('remarks').textContent = run.remarks.join(' ');
  for (const id of ['numbers', 'controls']) byId(id).hidden = !run.curves.length;

  const charts = [];
  const pointAll = (step) => charts.forEach((chart) => chart.point(step));
  for (const [name, curves] of chartsOf(run.curves)) {
    charts.push(new Chart(name, curves, run, pointAll));
  }
  const draw = () => {
    const smoothing = Number(byId('smoothing').value);
    byId('smoothed').textContent = smoothing.toFixed(2);
    const options = {smoothing, logarithmic: byId('logarithmic').checked};
    charts.forEach((chart) => chart.draw(options));
  };
  byId('smoothing').addEventListener('input', draw);
  byId('logarithmic').addEventListener('change', draw);
  window.addEventListener('resize', draw);
  if (run.curves.length) showTable(run.curves);
  draw();
}

start();
