// @ts-check
// The page: the code, then the panels.

import * as api from './api.js';
import { panel } from './approvals.js';
import { element } from './dom.js';
import { words } from './words.js';

const main = element('main');
document.body.append(main);

/** @param {string} note */
function askForCode(note) {
  const input = /** @type {HTMLInputElement} */ (element('input', {
    id: 'code', autocomplete: 'off', spellcheck: 'false', autocapitalize: 'none', maxlength: 16,
  }));
  const told = element('p', { role: 'alert' }, note);
  const form = element('form', {
    class: 'enter',
    onsubmit: async (/** @type {Event} */ event) => {
      event.preventDefault();
      const code = input.value.trim().toLowerCase();
      input.value = '';
      try {
        await open(await api.enter(code));
      } catch {
        told.textContent = words.codeWrong;
      }
    },
  }, element('h1', {}, words.title), element('label', { for: 'code' }, words.code), input,
    element('button', { class: 'main', type: 'submit' }, words.enter),
    told, element('p', { class: 'dim' }, words.codeHint));
  main.replaceChildren(form);
  input.focus();
}

/** @param {boolean} view */
async function open(view) {
  const count = element('span', { class: 'count', hidden: true });
  const line = element('p', { class: 'dim', role: 'status' });
  const nav = element('nav', { 'aria-label': words.panels },
    element('span', { 'aria-current': 'page' }, words.approvals, ' ', count));
  const refresh = async () => {
    const waiting = await approvals.refresh();
    count.textContent = String(waiting);
    count.hidden = waiting === 0;
    document.title = waiting ? `(${waiting}) ${words.title}` : words.title;
    line.textContent = (await api.status()).line;
  };
  const approvals = panel(view, refresh);
  main.replaceChildren(nav, line, approvals.root);
  await refresh();
  void follow(refresh);
}

/**
 * Looks again whenever something changed. A hidden page closes its stream: an origin has six.
 * @param {() => Promise<void>} refresh
 */
async function follow(refresh) {
  for (;;) {
    if (document.hidden) {
      await new Promise((shown) =>
        document.addEventListener('visibilitychange', shown, { once: true }));
      continue;
    }
    const stop = new AbortController();
    const hide = () => stop.abort();
    document.addEventListener('visibilitychange', hide);
    try {
      await api.watch(() => void refresh().catch(() => undefined), stop.signal);
    } catch (problem) {
      if (!stop.signal.aborted) {
        // Texts of a console that has gone are not left on the screen.
        const over = problem instanceof api.Problem && problem.status === 401;
        askForCode(over ? words.pageEnded : words.gone);
        return;
      }
    } finally {
      document.removeEventListener('visibilitychange', hide);
    }
  }
}

askForCode('');
