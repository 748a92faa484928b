// The drawing. Everything is drawn anew when a module opens or closes; what is selected or found is
// shown by classes.

const ARROW = 5;
const CROWD_OUT = 5;  // more edges than this out of a box, or in, are drawn fainter
const CROWD_IN = 20;

// What stands on the canvas for a node: itself, or the outermost closed module around it.
function shownAs(node) {
  let shown = node;
  for (let group = node.parent; group; group = group.parent) {
    if (group.closed) shown = group;
  }
  return shown;
}

function boxOf(item) {
  const height = item.isGroup ? item.height : item.boxHeight;
  return {left: item.x, right: item.x + NODE_WIDTH, top: item.y, bottom: item.y + height,
          middle: item.x + NODE_WIDTH / 2, centre: item.y + height / 2};
}

// A curve from one item to another: downwards if the target is below and not in another column.
function curve(from, to, toOtherColumn) {
  const a = boxOf(from);
  const b = boxOf(to);
  if (b.top >= a.bottom && !toOtherColumn) {
    const bend = Math.min(60, Math.max(8, (b.top - a.bottom) / 2));
    return `M${a.middle},${a.bottom}C${a.middle},${a.bottom + bend} ${b.middle},` +
        `${b.top - ARROW - bend} ${b.middle},${b.top - ARROW}v1`;
  }
  const toRight = b.middle > a.middle;
  const start = toRight ? a.right : a.left;
  const end = toRight ? b.left - ARROW : b.right + ARROW;
  const bend = (toRight ? 1 : -1) * Math.max(30, Math.abs(end - start) / 2);
  return `M${start},${a.centre}C${start + bend},${a.centre} ${end - bend},${b.centre} ${end},` +
      `${b.centre}h${toRight ? 1 : -1}`;
}

class Drawing {
  constructor(nodes, root, onSelect) {
    Object.assign(this, {nodes, root, onSelect, scale: 1, selected: null, hits: new Set()});
    this.svg = byId('graph');
    this.canvas = byId('canvas');
  }

  draw() {
    layout(this.root);
    this.svg.replaceChildren();
    const marker = svg('marker', {id: 'arrow', viewBox: '0 0 6 6', refX: 1, refY: 3,
                                  markerWidth: ARROW + 1, markerHeight: ARROW + 1,
                                  orient: 'auto', markerUnits: 'userSpaceOnUse'},
                       svg('defs', {}, this.svg));
    svg('path', {d: 'M0,0L6,3L0,6z'}, marker);
    const layers = ['modules', 'edges', 'nodes'].map((id) => svg('g', {id}, this.svg));
    for (const child of this.root.children.values()) this.drawGroup(child, layers[0]);
    this.drawEdges(layers[1]);
    this.shapes = new Map();
    for (const node of this.nodes) {
      if (shownAs(node) === node) this.drawNode(node, layers[2]);
    }
    this.zoom(this.scale);
    this.mark();
  }

  drawGroup(group, parent) {
    const shape = svg('g', {class: group.closed ? 'module closed' : 'module'}, parent);
    svg('rect', {x: group.x, y: group.y, width: group.width, height: group.height, rx: 5}, shape);
    const handle = svg('g', {class: 'handle'}, shape);
    svg('rect', {x: group.x, y: group.y, width: group.width, height: HEAD + 4}, handle);
    svg('text', {x: group.x + 7, y: group.y + 15}, handle,
        `${group.closed ? '\u25B8' : '\u25BE'} ${shorten(group.label, 26)}`);
    svg('title', {}, handle, `${group.label}: click to ${group.closed ? 'open' : 'close'}`);
    handle.addEventListener('click', () => {
      group.closed = !group.closed;
      this.draw();
    });
    if (group.closed) {
      const count = countNodes(group);
      svg('text', {x: group.x + 21, y: group.y + 31}, shape,
          count === 1 ? '1 node' : `${count} nodes`);
      return;
    }
    for (const child of group.children.values()) this.drawGroup(child, parent);
  }

  drawEdges(parent) {
    this.edges = [];
    const ends = new Map();  // of what is shown: what it goes to, and the shape of that edge
    const incoming = new Map();
    for (const node of this.nodes) {
      for (const [index] of node.inputs) {
        const from = this.nodes[index];
        if (from.host === node || node.host === from) continue;  // they touch
        const a = shownAs(from);
        const b = shownAs(node);
        if (a === b) continue;
        if (!ends.has(a)) ends.set(a, new Map());
        if (!ends.get(a).has(b)) {
          const d = curve(a, b, this.root.inRow && from.phase !== node.phase);
          const shape = svg('path', {class: 'edge', d, 'marker-end': 'url(#arrow)'}, parent);
          ends.get(a).set(b, shape);
          incoming.set(b, (incoming.get(b) || 0) + 1);
        }
        this.edges.push({from, to: node, shape: ends.get(a).get(b)});
      }
    }
    for (const targets of ends.values()) {
      for (const [b, shape] of targets) {
        const crowded = targets.size > CROWD_OUT || incoming.get(b) > CROWD_IN;
        shape.classList.toggle('crowded', crowded);
      }
    }
  }

  drawNode(node, parent) {
    const shape = svg('g', {id: `n${node.id}`, class: `node ${node.kind}`}, parent);
    const pill = isPill(node);
    svg('rect', {x: node.x, y: node.y + (pill ? 1 : 0), width: NODE_WIDTH,
                 height: node.boxHeight - (pill ? 2 : 0), rx: pill || node.isState ? 7 : 3},
        shape);
    const line = (i, text, type) =>
        svg('text', {x: node.x + 6, y: node.y + 12.5 + 14 * i, class: type}, shape, text);
    if (pill) {
      line(0, shorten(`${node.op} ${node.label}`, 28), 'name');
    } else {
      line(0, shorten(node.op, 26), 'op');
      line(1, shorten(node.label, 28), 'name');
      if (node.returns.length) {
        const text = shorten(`returned ${node.returns.join(', ')}`, 26 - node.op.length);
        svg('text', {x: node.x + NODE_WIDTH - 6, y: node.y + 12.5, 'text-anchor': 'end'}, shape,
            text);
      }
      const more = node.types.length > 1 ? ` +${node.types.length - 1}` : '';
      line(2, shorten(node.types[0] || '', 28 - more.length) + more, 'type');
    }
    svg('title', {}, shape, node.text);
    shape.addEventListener('click', () => this.onSelect(node));
    this.shapes.set(node, shape);
  }

  // Shows which nodes are found and which one is selected.
  mark() {
    this.svg.classList.toggle('searching', this.hits.size > 0);
    for (const [node, shape] of this.shapes) {
      shape.classList.toggle('hit', this.hits.has(node));
      shape.classList.toggle('selected', node === this.selected);
    }
    for (const {shape} of this.edges) shape.classList.remove('in', 'out');
    for (const {from, to, shape} of this.edges) {
      if (to === this.selected) shape.classList.add('in');
      if (from === this.selected) shape.classList.add('out');
    }
  }

  // Opens what hides the node and scrolls to it.
  reveal(node) {
    let opened = false;
    for (let group = node.parent; group; group = group.parent) {
      opened = opened || group.closed;
      group.closed = false;
    }
    if (opened) this.draw();
    const {middle, centre} = boxOf(node);
    this.canvas.scrollTo(middle * this.scale - this.canvas.clientWidth / 2,
                         centre * this.scale - this.canvas.clientHeight / 2);
  }

  zoom(scale) {
    this.scale = Math.min(4, Math.max(.05, scale));
    const {width, height} = this.root;
    this.svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
    this.svg.setAttribute('width', width * this.scale);
    this.svg.setAttribute('height', height * this.scale);
  }

  fit() {
    const {clientWidth, clientHeight} = this.canvas;
    this.zoom(Math.min(1, clientWidth / this.root.width, clientHeight / this.root.height));
  }
}
