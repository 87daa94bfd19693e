// @ts-check
// Elements of text. Nothing in this page reads markup: a stranger's text is a text node.

/** Characters that can't be seen, or that turn the text around them. */
const HIDDEN =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

/**
 * A text with what can't be seen written out.
 * @param {string} text
 */
export function plain(text) {
  return text.replace(HIDDEN, (found) => {
    if (found === '\n') return found;
    const code = (found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    return `\\u{${code}}`;
  });
}

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 * @typedef {string | number | boolean | ((event: any) => void) | null | undefined} Attribute
 */

/**
 * An element. An attribute that is false or absent is left out; `on...` is a listener.
 * @param {string} name
 * @param {Record<string, Attribute>} attributes
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? '' : String(value));
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    made.append(child instanceof Node ? child : document.createTextNode(plain(String(child))));
  }
  return made;
}

/**
 * Lines of a difference.
 * @param {string} name
 * @param {string[]} lines
 */
export function changedLines(name, lines) {
  return element('pre', { tabindex: 0, 'aria-label': name }, lines.map((line) =>
    element('div', { class: line.startsWith('+') ? 'added' : line.startsWith('-') && 'gone' }, line)));
}

/**
 * Puts rows into an element. A row that is there already keeps its element, so that neither a focus
 * nor what a finger points at moves; one that says something else is made anew in its place.
 * @template Row
 * @param {HTMLElement} into
 * @param {Row[]} rows
 * @param {(row: Row) => string} key
 * @param {(row: Row) => HTMLElement} make
 */
export function fill(into, rows, key, make) {
  /** @type {Map<string, HTMLElement>} */
  const known = new Map();
  for (const child of into.children) {
    if (child instanceof HTMLElement) known.set(child.dataset.key ?? '', child);
  }
  let at = into.firstElementChild;
  for (const row of rows) {
    const name = key(row);
    const said = JSON.stringify(row);
    let found = known.get(name);
    if (found && found.dataset.said !== said) {
      const fresh = make(row);
      if (at === found) at = fresh;
      found.replaceWith(fresh);
      found = fresh;
    }
    found ??= make(row);
    found.dataset.key = name;
    found.dataset.said = said;
    known.delete(name);
    if (found === at) at = at.nextElementSibling;
    else into.insertBefore(found, at);
  }
  for (const gone of known.values()) gone.remove();
}
