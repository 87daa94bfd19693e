// @ts-check
// The log, a line a call, backwards; and a record whole.

import * as api from './api.js';
import { element } from './dom.js';
import { words } from './words.js';

/** Fields of a record that are shown large, below the others. */
const LARGE = new Set(['args', 'delivered']);

/** The panel. */
export function panel() {
  const list = element('tbody');
  const card = element('article', { class: 'card' }, element('p', { class: 'dim' }, words.chooseRecord));
  const note = element('p', { class: 'dim', role: 'status' });
  const more = element('button', { hidden: true, onclick: () => void show(true) }, words.older);
  /** @param {string} id @param {string} label @param {string} [hint] */
  const field = (id, label, hint) => element('label', { for: id }, label, ' ',
    element('input', { id, placeholder: hint, maxlength: 128, spellcheck: 'false' }));
  /** @param {string} id @param {string} label */
  const box = (id, label) => element('label', { for: id },
    element('input', { id, type: 'checkbox' }), ' ', label);
  const form = element('form', {
    class: 'filter',
    onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); void show(false); },
  }, field('agent', words.agent), field('tool', words.tool), field('since', words.sinceAge, '2h'),
    box('refused', words.refused), box('outside', words.outside),
    element('button', { type: 'submit' }, words.filter));
  const head = element('tr', {}, [words.record, words.when, words.agent, words.happened].map(
    (name) => element('th', { scope: 'col' }, name)));
  const table = element('table', { 'aria-label': words.timeline }, element('thead', {}, head), list);
  const root = element('section', { class: 'panel' }, element('h1', {}, words.timeline), form,
    element('div', { class: 'split wide' }, element('div', {}, table, note, more), card));
  /** @type {number | null} */
  let next = null;
  /** True while older lines are shown: new ones wait for the person. */
  let older = false;

  /** @param {string} id */
  const input = (id) => /** @type {HTMLInputElement} */ (form.querySelector(`#${id}`));

  /** @param {any} line */
  const row = (line) => element('tr', { class: line.refused && 'refused' },
    element('td', { class: 'number' }, element('button', {
      class: 'link', onclick: () => void choose(line.seq),
    }, line.seq)),
    element('td', { class: 'number dim', title: line.utc }, line.utc ? line.utc.slice(11, 19) : ''),
    element('td', { class: 'agent' }, line.agent ?? ''),
    element('td', { class: 'code' }, line.what));

  /** @param {boolean} on */
  async function show(on) {
    const filter = {
      agent: input('agent').value.trim(), tool: input('tool').value.trim(),
      since: input('since').value.trim(),
      refused: input('refused').checked, outside: input('outside').checked,
    };
    try {
      const page = await api.timeline(on && next !== null ? { ...filter, before: next } : filter);
      const rows = page.lines.map(row);
      if (on) list.append(...rows);
      else list.replaceChildren(...rows);
      older = on;
      next = page.next;
      more.hidden = next === null;
      note.textContent = words.looked(page.lines.length, page.read);
    } catch (problem) {
      note.textContent = problem instanceof Error ? problem.message : words.gone;
    }
  }

  /** @param {number} seq */
  async function choose(seq) {
    const record = await api.record(seq);
    const fields = element('dl');
    const large = [];
    for (const [name, value] of Object.entries(record)) {
      if (LARGE.has(name) && value !== null) {
        const text = JSON.stringify(value, null, 2);
        large.push(element('h3', {}, name),
          element('pre', { tabindex: 0, 'aria-label': name }, text));
        continue;
      }
      const shown = typeof value === 'object' ? JSON.stringify(value) : String(value);
      fields.append(element('dt', {}, name), element('dd', { class: 'code' }, shown));
    }
    card.replaceChildren(element('h2', {}, words.record, ' ', seq), ...large, fields);
    card.scrollIntoView({ block: 'nearest' });
  }

  return { root, refresh: async () => { if (!older) await show(false); } };
}
