// Where items stand. A group puts its items into layers from top to bottom, each below all that it
// reads, and is as large as they need; so nothing overlaps, by construction.

const NODE_WIDTH = 194;
const NODE_HEIGHT = 47;
const PILL_HEIGHT = 17;  // of state that stands at a node
const CLOSED_HEIGHT = 40;
const GAP_X = 16;
const GAP_Y = 24;
const PAD = 10;   // inside a module
const HEAD = 18;  // its title
const MAX_ROW = 3 * (NODE_WIDTH + GAP_X);  // a wider layer is broken into rows

const isPill = (node) => Boolean(node.host);

// The items of a group, each after all that it reads; where modules read each other, in the order
// of the graph. Fills in what they read and what reads them within the group.
function itemsOf(group) {
  const children = [...group.children.values()];
  if (group.inRow) return children;
  let left = [...group.nodes.filter((node) => !isPill(node)), ...children];
  left.sort((a, b) => a.first - b.first);
  for (const item of left) Object.assign(item, {reads: new Set(), readBy: new Set(), rank: -1});
  for (const [a, b] of group.links) {
    b.reads.add(a);
    a.readBy.add(b);
  }
  const items = [];
  const waiting = new Map(left.map((item) => [item, item.reads.size]));
  let ready = left.filter((item) => waiting.get(item) === 0);
  while (items.length < waiting.size) {
    if (!ready.length) ready = [left.find((item) => item.rank < 0)];  // a cycle: cut it here
    const item = ready.shift();
    item.rank = items.length;
    items.push(item);
    for (const reader of item.readBy) {
      waiting.set(reader, waiting.get(reader) - 1);
      if (waiting.get(reader) === 0 && reader.rank < 0) ready.push(reader);
    }
  }
  for (const item of items) {
    item.reads = [...item.reads].filter((read) => read.rank < item.rank);
    item.readBy = [...item.readBy].filter((reader) => reader.rank > item.rank);
  }
  return items;
}

// Items by layer: one more than the deepest that they read.
function layersOf(items) {
  for (const item of items) {
    item.layer = Math.max(0, ...item.reads.map((read) => read.layer + 1));
  }
  // What reads nothing stands right above its first reader.
  for (const item of [...items].reverse()) {
    if (item.reads.length || !item.readBy.length) continue;
    item.layer = Math.max(0, Math.min(...item.readBy.map((reader) => reader.layer)) - 1);
  }
  // What stands alone, such as a marker, comes last.
  const last = items.length;
  const layers = [];
  for (const item of items) {
    const layer = item.reads.length || item.readBy.length ? item.layer : last;
    (layers[layer] = layers[layer] || []).push(item);
  }
  return layers.filter(Boolean);
}

function sizeOf(item) {
  if (item.isGroup) {
    layoutGroup(item);
  } else {
    item.width = NODE_WIDTH;
    item.height = NODE_HEIGHT + PILL_HEIGHT * (item.above.length + item.below.length);
  }
}

function rowsOf(layer) {
  const rows = [[]];
  let width = 0;
  for (const item of layer) {
    if (width > 0 && width + item.width > MAX_ROW) {
      rows.push([]);
      width = 0;
    }
    rows[rows.length - 1].push(item);
    width += item.width + GAP_X;
  }
  return rows;
}

// Sideways place: the middle of what it reads, as far as placed; measured from the row's middle.
function pull(item) {
  const placed = item.reads.filter((read) => read.offset !== undefined);
  if (!placed.length) return 0;
  return placed.reduce((sum, read) => sum + read.offset, 0) / placed.length;
}

function layoutGroup(group) {
  if (group.closed) {
    group.width = NODE_WIDTH;
    group.height = CLOSED_HEIGHT;
    return;
  }
  const items = itemsOf(group);
  items.forEach(sizeOf);
  const rows = [];
  for (const item of items) item.offset = undefined;
  for (const layer of group.inRow ? [items] : layersOf(items)) {
    if (!group.inRow) layer.sort((a, b) => pull(a) - pull(b));
    for (const row of group.inRow ? [layer] : rowsOf(layer)) {
      const width = row.reduce((sum, item) => sum + item.width + GAP_X, -GAP_X);
      let x = -width / 2;
      for (const item of row) {
        item.offset = x + item.width / 2;
        x += item.width + GAP_X;
      }
      rows.push({row, width});
    }
  }
  const inner = Math.max(NODE_WIDTH, ...rows.map((row) => row.width));
  const head = group.parent ? HEAD : 0;
  let y = PAD + head;
  for (const {row} of rows) {
    for (const item of row) {
      item.dx = PAD + inner / 2 + item.offset - item.width / 2;
      item.dy = y;
    }
    y += Math.max(...row.map((item) => item.height)) + GAP_Y;
  }
  group.width = inner + 2 * PAD;
  group.height = y - (rows.length ? GAP_Y : 0) + PAD;
}

// From places within groups to places on the canvas.
function settle(group, x, y) {
  Object.assign(group, {x, y});
  if (group.closed) return;
  for (const child of group.children.values()) settle(child, x + child.dx, y + child.dy);
  for (const node of group.nodes) {
    if (isPill(node)) continue;
    let top = y + node.dy;
    const place = (item, height) => {
      Object.assign(item, {x: x + node.dx, y: top, boxHeight: height});
      top += height;
    };
    node.above.forEach((pill) => place(pill, PILL_HEIGHT));
    place(node, NODE_HEIGHT);
    node.below.forEach((pill) => place(pill, PILL_HEIGHT));
  }
}

function layout(root) {
  layoutGroup(root);
  settle(root, 0, 0);
}
