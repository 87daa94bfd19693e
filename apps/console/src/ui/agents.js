// @ts-check
// The agents, their tokens that can be used, what is left, and the paths that each reaches.

import * as api from './api.js';
import { outcome } from './done.js';
import { element, fill } from './dom.js';
import { words } from './words.js';

/** Amounts of a token that are shown; the others are shown where they are limited. */
const AMOUNTS = ['calls', 'disk_write_bytes', 'egress_bytes', 'credits_micro'];

/**
 * The panel. `view` if the page may only look; `changed` once an act is on record.
 * @param {boolean} view
 * @param {() => Promise<void>} changed
 */
export function panel(view, changed) {
  const list = element('tbody');
  const card = element('article', { class: 'card' }, element('p', { class: 'dim' }, words.chooseAgent));
  const note = element('p', { role: 'status' });
  const empty = element('p', { class: 'dim', hidden: true }, words.noAgents);
  const head = element('tr', {}, [words.agent, words.tokens, words.standing].map(
    (name) => element('th', { scope: 'col' }, name)));
  const table = element('table', { 'aria-label': words.agents }, element('thead', {}, head), list);
  const root = element('section', { class: 'panel' }, element('h1', {}, words.agents),
    element('div', { class: 'split' }, element('div', {}, table, empty), element('div', {}, card, note)));
  /** @type {any[]} */
  let agents = [];
  /** @type {string | null} */
  let chosen = null;

  /** @param {any} one */
  const row = (one) => element('tr', {},
    element('td', { class: `depth${Math.min(4, one.agent.split('/').length)}` }, element('button', {
      class: 'link', onclick: () => { chosen = one.agent; show(); },
    }, one.agent)),
    element('td', { class: 'number' }, one.tokens.length),
    element('td', {}, one.frozen ? element('span', { class: 'tag warn' }, words.frozen) : words.runs));

  /** @param {() => Promise<any>} act */
  async function wish(act) {
    note.textContent = words.working;
    const said = await outcome(act);
    try {
      await changed();
    } finally {
      note.textContent = said;
    }
  }

  function show() {
    const one = agents.find((agent) => agent.agent === chosen);
    if (!one) {
      card.replaceChildren(element('p', { class: 'dim' }, words.chooseAgent));
      return;
    }
    const stop = one.frozen
      ? element('button', { onclick: () => void wish(() => api.thaw(one.agent)) }, words.thaw(one.agent))
      : element('button', { class: 'stop', onclick: () => void wish(() => api.freeze(one.agent)) },
        words.freeze(one.agent));
    card.replaceChildren(element('h2', {}, one.agent),
      ...(view ? [] : [element('div', { class: 'acts' }, stop)]),
      ...paths(one), ...resume(one.resume), ...one.tokens.flatMap(token));
  }

  /**
   * The paths that any of its tokens reaches, as a list that gets shorter at a click.
   * @param {any} one
   */
  function paths(one) {
    /** @type {Map<string, Set<string>>} */
    const all = new Map();
    for (const grant of one.tokens.flatMap((/** @type {any} */ token) => Object.values(token.grants))) {
      for (const rule of Object.values(grant).flatMap((/** @type {any} */ scope) => scope.paths ?? [])) {
        const path = rule.below ? `${rule.root}/${rule.below}` : rule.root;
        const rights = all.get(path) ?? new Set();
        rule.rights.forEach((/** @type {string} */ right) => rights.add(right));
        all.set(path, rights);
      }
    }
    if (all.size === 0) return [];
    const items = [...all].map(([path, rights]) => element('li', {},
      element('span', { class: 'code' }, path), ' ', element('span', { class: 'dim' }, [...rights].join(', ')),
      ' ', !view && all.size > 1 && element('button', {
        class: 'stop small', 'aria-label': words.removePath(path),
        onclick: () => void wish(() =>
          api.paths(one.agent, [...all.keys()].filter((other) => other !== path))),
      }, words.remove)));
    return [element('h3', {}, words.paths), element('ul', { class: 'list' }, items),
      element('p', { class: 'dim code' }, words.addPath)];
  }

  /**
   * The agent's own resume, which follows its newest token; one that can't be read is left alone.
   * @param {any} own
   */
  function resume(own) {
    if (!own) return [];
    return [element('h3', {}, words.resume),
      element('p', { class: 'code' }, own.file),
      element('p', { class: own.warning ? 'tag warn' : 'dim' },
        own.warning ? words.resumeLeft(own.warning) : words.resumeFollows)];
  }

  /** @param {any} token */
  function token(token) {
    const list = element('dl');
    /** @param {string} name @param {string} value @param {boolean} [code] */
    const add = (name, value, code = false) => list.append(
      element('dt', {}, name), element('dd', { class: code && 'code' }, value));
    add(words.expires, token.expires);
    add(words.tools, Object.keys(token.grants).join(', '), true);
    for (const name of AMOUNTS) {
      const one = token.budget[name];
      if (one) add(name, words.leftOf(one.left, one.limit));
    }
    if (token.parent) add(words.derivedFrom, token.parent, true);
    return [element('h3', {}, words.token, ' ', element('span', { class: 'code' }, token.token_id.slice(0, 12))),
      list, view ? null : element('div', { class: 'acts' }, element('button', {
        class: 'stop', onclick: () => void wish(() => api.revoke(token.token_id)),
      }, words.revoke(token.token_id.slice(0, 12))))].filter((one) => one !== null);
  }

  async function refresh() {
    agents = await api.agents();
    fill(list, agents, (one) => one.agent, row);
    empty.hidden = agents.length > 0;
    table.hidden = agents.length === 0;
    show();
    return agents.length;
  }

  return { root, refresh };
}
