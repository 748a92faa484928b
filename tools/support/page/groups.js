// The tree of modules. An item is a node or a group; both have parent, depth, and first: the
// position of the (first) node in the graph.

const PHASES = ['forward', 'backward', 'update'];

function newGroup(parent, label) {
  const group = {
    isGroup: true, label, parent, depth: parent ? parent.depth + 1 : 0, first: Infinity,
    children: new Map(), nodes: [], links: [], closed: false, inRow: false,
  };
  if (parent) parent.children.set(label, group);
  return group;
}

// The names of the groups that hold a node, outermost first. State that an optimizer or a scaler
// keeps has no module; it goes by who asked for it.
function pathOf(node, withPhases) {
  let path = node.scope ? node.scope.split('/') : [];
  if (!node.scope && node.phase === 'update' && node.from) path = [node.from];
  return withPhases ? [node.phase, ...path] : path;
}

// A source stands at its first reader in its module, a commit at the node it commits, and both
// count as part of that node.
function attachState(nodes) {
  for (const node of nodes) {
    if (node.op === 'commit') {
      const from = nodes[node.inputs[0][0]];
      if (from.parent === node.parent && !from.host) node.host = from;
    } else if (node.inputs.length === 0 && node.users.length) {
      const reader = node.users.find((user) => user.parent === node.parent);
      if (reader && reader.op !== 'commit') node.host = reader;
    }
    if (node.host) node.host[node.op === 'commit' ? 'below' : 'above'].push(node);
  }
}

// A group that holds nothing but another group says so in one box.
function joinChains(group) {
  for (const [key, child] of group.children) {
    let inner = child;
    while (inner.depth > 1 && inner.nodes.length === 0 && inner.children.size === 1) {
      const only = inner.children.values().next().value;
      only.label = `${inner.label}/${only.label}`;
      inner = only;
    }
    inner.parent = group;
    group.children.set(key, inner);
    joinChains(inner);
  }
}

function setDepths(group, depth) {
  group.depth = depth;
  for (const node of group.nodes) node.depth = depth + 1;
  for (const child of group.children.values()) setDepths(child, depth + 1);
}

// Notes an edge in the innermost group that holds both ends, as a link between two of its items.
function addLink(from, to) {
  let a = from.host || from;
  let b = to.host || to;
  while (a.parent !== b.parent) {
    if (a.depth >= b.depth) a = a.parent;
    else b = b.parent;
  }
  if (a !== b) a.parent.links.push([a, b]);
}

function buildGroups(nodes) {
  const withPhases = new Set(nodes.map((node) => node.phase)).size > 1;
  const root = newGroup(null, '');
  root.inRow = withPhases;
  if (withPhases) PHASES.forEach((phase) => newGroup(root, phase));
  for (const node of nodes) {
    let group = root;
    for (const name of pathOf(node, withPhases)) {
      group = group.children.get(name) || newGroup(group, name);
      group.first = Math.min(group.first, node.first);
    }
    node.parent = group;
    group.nodes.push(node);
  }
  for (const [phase, group] of root.children) {
    if (group.first === Infinity) root.children.delete(phase);
  }
  joinChains(root);
  setDepths(root, 0);
  attachState(nodes);
  for (const node of nodes) node.inputs.forEach(([from]) => addLink(nodes[from], node));
  return root;
}

function forEachGroup(group, action) {
  for (const child of group.children.values()) {
    action(child);
    forEachGroup(child, action);
  }
}

function countNodes(group) {
  let count = group.nodes.length;
  for (const child of group.children.values()) count += countNodes(child);
  return count;
}

// Nodes and closed modules that stand on the canvas for a group.
function countShown(group) {
  let count = group.nodes.length;
  for (const child of group.children.values()) count += child.closed ? 1 : countShown(child);
  return count;
}
