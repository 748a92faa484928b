// Small helpers. All text of the data goes through textContent, never through markup.

const byId = (id) => document.getElementById(id);

// The namespace of SVG, taken from the page.
const SVG = document.querySelector('svg').namespaceURI;

function svg(name, attributes, parent, text) {
  const element = document.createElementNS(SVG, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  if (parent) parent.appendChild(element);
  return element;
}

function html(name, properties, parent, text) {
  const element = Object.assign(document.createElement(name), properties);
  if (text !== undefined) element.textContent = text;
  if (parent) parent.appendChild(element);
  return element;
}

function formatBytes(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  let unit = -1;
  do {
    bytes /= 1024;
    ++unit;
  } while (bytes >= 1024 && unit < 3);
  return `${bytes.toFixed(1)} ${['KiB', 'MiB', 'GiB', 'TiB'][unit]}`;
}

function formatCount(count) {
  if (count < 10000) return String(count);
  let unit = -1;
  do {
    count /= 1000;
    ++unit;
  } while (count >= 1000 && unit < 4);
  return `${count.toPrecision(3)} ${['k', 'M', 'G', 'T', 'P'][unit]}`;
}

function formatShare(part, whole) {
  return whole ? `${(100 * part / whole).toFixed(1)} %` : '-';
}

// `text` in at most `length` characters: names differ most often at their ends, so the middle goes.
function shorten(text, length) {
  if (text.length <= length) return text;
  const tail = Math.floor((length - 1) / 2);
  return `${text.slice(0, length - 1 - tail)}\u2026${text.slice(text.length - tail)}`;
}
