// @ts-check
// The home in a few lines, each with the command that does more.

import * as api from './api.js';
import { element } from './dom.js';
import { words } from './words.js';

/** The panel. */
export function panel() {
  const rows = element('div');
  const root = element('section', { class: 'panel' }, element('h1', {}, words.home), rows);
  return {
    root,
    refresh: async () => {
      const said = await api.home();
      rows.replaceChildren(...said.flatMap((/** @type {any} */ row) => [
        element('h2', {}, row.name),
        ...row.lines.map((/** @type {string} */ line) => element('p', { class: 'code' }, line)),
        element('p', { class: 'dim' }, words.command, ': ', element('code', {}, row.command)),
      ]));
    },
  };
}
