// @ts-check
// The page: the code, then the panels.

import * as agents from './agents.js';
import * as api from './api.js';
import * as approvals from './approvals.js';
import * as connectors from './connectors.js';
import { element, plain } from './dom.js';
import * as home from './home.js';
import * as timeline from './timeline.js';
import * as tools from './tools.js';
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
  const place = element('div');
  const waiting = approvals.panel(view, () => refresh());
  const log = { name: words.timeline, panel: timeline.panel(), more: null };
  // Of a home that nothing here can serve there is the log, and nothing else.
  const alone = (await api.status()).log_alone === true;
  const panels = alone ? [log] : [
    { name: words.approvals, panel: waiting, more: count },
    log,
    { name: words.agents, panel: agents.panel(view, () => refresh()), more: null },
    { name: words.tools, panel: tools.panel(view, () => refresh()), more: null },
    { name: words.connectors, panel: connectors.panel(view, () => refresh()), more: null },
    { name: words.home, panel: home.panel(), more: null },
  ];
  let shown = panels[0];
  const tabs = panels.map((one) => element('button', {
    class: 'tab', onclick: () => void choose(one),
  }, one.name, ' ', one.more));
  const nav = element('nav', { 'aria-label': words.panels }, tabs);
  /** @param {typeof panels[number]} one */
  const choose = async (one) => {
    shown = one;
    tabs.forEach((tab, at) => tab.setAttribute('aria-current', String(panels[at] === one)));
    place.replaceChildren(one.panel.root);
    await refresh();
  };
  const refresh = async () => {
    const waits = alone ? 0 : await waiting.refresh();
    count.textContent = String(waits);
    count.hidden = waits === 0;
    document.title = waits ? `(${waits}) ${words.title}` : words.title;
    line.textContent = plain(String((await api.status()).line));
    if (shown.panel !== waiting) await shown.panel.refresh();
  };
  main.replaceChildren(nav, line, place);
  await choose(shown);
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
