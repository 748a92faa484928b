// Search: every word must occur in what a node says of itself, not of its operands. The query is kept in the fragment of
// the address, "#q=conv", so that it can be passed on.

class Search {
  constructor(nodes, drawing, onSelect) {
    Object.assign(this, {nodes, drawing, onSelect, found: [], at: 0});
    this.texts = nodes.map((node) => [
      node.path, node.op, node.label, ...node.types, node.kind === 'low' ? '16-bit' : node.kind,
      node.phase, node.pass, node.location, ...node.returns,
    ].filter(Boolean).join('\n').toLowerCase());
    byId('query').addEventListener('input', () => {
      history.replaceState(null, '', `#q=${encodeURIComponent(byId('query').value)}`);
      this.run(byId('query').value);
    });
    byId('query').addEventListener('keydown', (event) => {
      if (event.key !== 'Enter') return;
      event.preventDefault();
      this.step(event.shiftKey ? -1 : 1);
    });
    byId('search').addEventListener('submit', (event) => {
      event.preventDefault();
      this.step(1);
    });
    byId('previous').addEventListener('click', () => this.step(-1));
    window.addEventListener('hashchange', () => this.readAddress());
  }

  readAddress() {
    const match = /^#q=(.*)$/.exec(location.hash);
    if (!match) return;
    try {
      byId('query').value = decodeURIComponent(match[1]);
    } catch (error) {
      return;  // not a query of ours
    }
    this.run(byId('query').value);
  }

  run(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    this.found = words.length === 0 ? [] : this.nodes.filter(
        (node, i) => words.every((word) => this.texts[i].includes(word)));
    this.at = 0;
    this.drawing.hits = new Set(this.found);
    this.drawing.mark();
    if (words.length === 0) byId('found').textContent = '';
    else this.show();
  }

  step(by) {
    if (!this.found.length) return;
    this.at = (this.at + by + this.found.length) % this.found.length;
    this.show();
  }

  show() {
    if (this.found.length) this.onSelect(this.found[this.at]);
    byId('found').textContent =
        this.found.length ? `${this.at + 1} of ${this.found.length}` : 'not found';
  }
}
