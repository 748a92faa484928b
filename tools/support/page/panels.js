// The right-hand side: the selected node, memory, decisions, cost.

// A path may be broken after a slash.
function addBreakable(cell, text) {
  text.split(/(?<=\/)/).forEach((part, i) => {
    if (i > 0) html('wbr', {}, cell);
    cell.append(part);
  });
}

// A table whose rows select nodes. Columns: {title, text(row), number, type(row)}.
function table(place, columns, rows, nodeOf, onSelect) {
  const scroll = html('div', {className: 'scroll'}, place);
  const element = html('table', {}, scroll);
  const head = html('tr', {}, html('thead', {}, element));
  for (const column of columns) {
    html('th', {className: column.number ? 'number' : ''}, head, column.title);
  }
  const body = html('tbody', {}, element);
  for (const row of rows) {
    const line = html('tr', {}, body);
    for (const column of columns) {
      const type = column.type ? column.type(row) : '';
      addBreakable(html('td', {className: column.number ? 'number' : type}, line), column.text(row));
    }
    const node = nodeOf(row);
    if (!node) continue;
    line.dataset.node = node.id;
    line.addEventListener('click', () => onSelect(node));
  }
}

function showNode(node, nodes, onSelect) {
  const place = byId('node');
  place.replaceChildren();
  const list = html('dl', {}, place);
  const add = (title, text) => {
    if (!text) return null;
    html('dt', {}, list, title);
    return html('dd', {}, list, text);
  };
  const addLinks = (title, linked) => {
    if (!linked.length) return;
    const item = add(title, ' ');
    linked.slice(0, 40).forEach((other, i) => {
      if (i > 0) item.append(', ');
      const link = html('a', {className: 'node-link'}, item, `%${other.name}`);
      link.addEventListener('click', () => onSelect(other));
    });
    if (linked.length > 40) item.append(` and ${linked.length - 40} more`);
  };
  add('node', node.text);
  add('module', node.scope);
  add('returned', node.returns.join(', '));
  add('written at', node.location);
  add('made by', node.pass && (node.from ? `${node.pass}, from ${node.from}` : node.pass));
  if (node.amp) add('precision', `${node.amp.reason} (class ${node.amp.class})`);
  add('cost', (node.flops || node.bytes) &&
      `${formatCount(node.flops)} flops, ${formatBytes(node.bytes)} read and written`);
  addLinks('reads', [...new Set(node.inputs.map(([index]) => nodes[index]))]);
  addLinks('read by', [...new Set(node.users)]);
}

// Live bytes as a staircase over the steps.
class Chart {
  constructor(memory, nodes, onSelect) {
    Object.assign(this, {memory, nodes, left: 6, right: 6, top: 16, bottom: 16});
    this.svg = byId('chart');
    this.svg.addEventListener('click', (event) => {
      const step = this.stepAt(event.offsetX);
      if (step) onSelect(nodes[step.node]);
    });
    this.svg.addEventListener('mousemove', (event) => {
      const step = this.stepAt(event.offsetX);
      if (step) this.tip.textContent = `${nodes[step.node].name}: ${formatBytes(step.live)}`;
    });
  }

  get width() { return this.svg.clientWidth || 430; }
  get height() { return this.svg.clientHeight || 150; }

  xOf(step) {
    const {steps} = this.memory;
    return this.left + step * (this.width - this.left - this.right) / steps.length;
  }

  yOf(bytes) {
    const peak = this.memory.peak === null ? 1 : this.memory.steps[this.memory.peak].live || 1;
    return this.height - this.bottom - bytes / peak * (this.height - this.top - this.bottom);
  }

  stepAt(x) {
    const {steps} = this.memory;
    const share = (x - this.left) / (this.width - this.left - this.right);
    return steps[Math.min(steps.length - 1, Math.max(0, Math.floor(share * steps.length)))];
  }

  draw() {
    const {steps, peak} = this.memory;
    this.svg.replaceChildren();
    this.tip = svg('title', {}, this.svg);
    if (peak === null) return;
    const floor = this.yOf(0);
    const stairs = steps.map((step, i) => `L${this.xOf(i)},${this.yOf(step.live)}` +
                                          `H${this.xOf(i + 1)}`);
    svg('path', {class: 'area', d: `M${this.xOf(0)},${floor}${stairs.join('')}V${floor}z`},
        this.svg);
    svg('path', {class: 'axis', d: `M${this.left},${floor}H${this.width - this.right}`}, this.svg);
    const high = this.yOf(steps[peak].live);
    svg('path', {class: 'peak', d: `M${this.left},${high}H${this.width - this.right}`}, this.svg);
    const middle = (this.xOf(peak) + this.xOf(peak + 1)) / 2;
    svg('text', {x: Math.min(this.width - 110, Math.max(110, middle)), y: high - 5,
                 'text-anchor': 'middle'}, this.svg,
        `peak ${formatBytes(steps[peak].live)} at ${shorten(this.nodes[steps[peak].node].name, 20)}`);
    svg('text', {x: this.left, y: this.height - 3}, this.svg, 'step 1');
    svg('text', {x: this.width - this.right, y: this.height - 3, 'text-anchor': 'end'}, this.svg,
        `step ${steps.length}`);
    this.mark = svg('path', {class: 'mark', visibility: 'hidden'}, this.svg);
  }

  select(node) {
    if (!this.mark) return;
    const step = this.memory.steps.findIndex(({node: index}) => this.nodes[index] === node);
    this.mark.setAttribute('visibility', step < 0 ? 'hidden' : 'visible');
    if (step < 0) return;
    const x = (this.xOf(step) + this.xOf(step + 1)) / 2;
    this.mark.setAttribute('d', `M${x},${this.top}V${this.height - this.bottom}`);
  }
}

function showMemory(memory, nodes, onSelect) {
  const {outside} = memory;
  byId('chart-text').textContent =
      (memory.planned ? `Arena by plan: ${formatBytes(memory.arena)}. `
                      : 'By node order: a graph with markers has no plan. ') +
      `Outside: inputs ${formatBytes(outside.inputs)}, constants ` +
      `${formatBytes(outside.constants)}, variables ${formatBytes(outside.variables)}, outputs ` +
      `${formatBytes(outside.outputs)}.`;
  if (memory.peak === null) return;
  const total = memory.steps[memory.peak].live;
  table(byId('held'), [
    {title: 'held at the peak', text: (row) => row.value},
    {title: 'type', text: (row) => row.type},
    {title: 'bytes', number: true, text: (row) => formatBytes(row.bytes)},
    {title: 'share', number: true, text: (row) => formatShare(row.bytes, total)},
  ], memory.held, (row) => nodes[row.node], onSelect);
}

function showAmp(amp, nodes, onSelect) {
  byId('amp-text').textContent =
      amp.rows.length ? amp.summary : 'No decisions: no pass has taken any.';
  if (!amp.rows.length) return;
  table(byId('amp'), [
    {title: 'node', text: (row) => row.path},
    {title: 'dtype', text: (row) => row.dtype, type: (row) => row.low ? 'low' : 'f32'},
    {title: 'class', text: (row) => row.class},
    {title: 'why', text: (row) => row.why},
    {title: 'saved', number: true, text: (row) => row.saved ? formatBytes(row.saved) : ''},
    {title: 'casts', number: true, text: (row) => row.casts ? formatBytes(row.castBytes) : ''},
  ], amp.rows, (row) => nodes[row.node], onSelect);
}

function showCost(cost, nodes, onSelect) {
  byId('cost-text').textContent =
      `${formatCount(cost.flops)} flops, ${formatShare(cost.lowFlops, cost.flops)} of them in ` +
      `nodes with 16-bit values; ${formatBytes(cost.bytes)} read and written.`;
  const rows = nodes.filter((node) => node.flops || node.bytes)
                   .sort((a, b) => b.flops - a.flops || b.bytes - a.bytes);
  if (!rows.length) return;
  table(byId('cost'), [
    {title: 'node', text: (node) => node.path},
    {title: 'flops', number: true, text: (node) => formatCount(node.flops)},
    {title: 'share', number: true, text: (node) => formatShare(node.flops, cost.flops)},
    {title: 'bytes', number: true, text: (node) => formatBytes(node.bytes)},
    {title: 'share', number: true, text: (node) => formatShare(node.bytes, cost.bytes)},
  ], rows, (node) => node, onSelect);
}
