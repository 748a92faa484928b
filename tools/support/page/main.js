// Puts the page together from the data that halftone_dump wrote.

const MAX_NODES_AT_ONCE = 600;  // of a larger graph, modules are closed at first

// From the innermost modules outwards, the largest first, until little enough is left to look at.
function closeModules(root) {
  const groups = [];
  forEachGroup(root, (group) => groups.push(group));
  groups.sort((a, b) => b.depth - a.depth || countNodes(b) - countNodes(a));
  let shown = countShown(root);
  for (const group of groups) {
    if (shown <= MAX_NODES_AT_ONCE) break;
    shown -= countShown(group) - 1;
    group.closed = true;
  }
}

function prepare(data) {
  data.nodes.forEach((node, i) => {
    Object.assign(node, {first: i, users: [], above: [], below: [], host: null});
  });
  for (const node of data.nodes) {
    for (const [from] of node.inputs) data.nodes[from].users.push(node);
  }
}

function start() {
  const data = JSON.parse(byId('data').textContent);
  const {nodes} = data;
  prepare(data);
  document.title = `@${data.graph}`;
  byId('title').textContent = `@${data.graph}`;
  byId('size').textContent = `${nodes.length} nodes`;

  const root = buildGroups(nodes);
  closeModules(root);
  const select = (node) => {
    drawing.selected = node;
    drawing.reveal(node);
    drawing.mark();
    chart.select(node);
    showNode(node, nodes, select);
    for (const row of document.querySelectorAll('tr[data-node]')) {
      row.classList.toggle('selected', row.dataset.node === String(node.id));
    }
  };
  const drawing = new Drawing(nodes, root, select);
  const chart = new Chart(data.memory, nodes, select);
  drawing.draw();
  chart.draw();
  showMemory(data.memory, nodes, select);
  showAmp(data.amp, nodes, select);
  showCost(data.cost, nodes, select);

  const search = new Search(nodes, drawing, select);
  const setAll = (closed) => {
    forEachGroup(root, (group) => { group.closed = closed && group.depth > (root.inRow ? 1 : 0); });
    drawing.draw();
  };
  byId('smaller').addEventListener('click', () => drawing.zoom(drawing.scale / 1.25));
  byId('larger').addEventListener('click', () => drawing.zoom(drawing.scale * 1.25));
  byId('whole').addEventListener('click', () => drawing.fit());
  byId('fold').addEventListener('click', () => setAll(true));
  byId('unfold').addEventListener('click', () => setAll(false));
  byId('canvas').addEventListener('wheel', (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    drawing.zoom(drawing.scale * (event.deltaY < 0 ? 1.1 : 1 / 1.1));
  }, {passive: false});
  window.addEventListener('resize', () => chart.draw());
  search.readAddress();
}

start();
