// @ts-check
// The tools that make requests: where each sends them, with what, and within which limits. Secrets are
// named here; their values are typed at the terminal and never come here.

import * as api from './api.js';
import { acting } from './done.js';
import { element, fill } from './dom.js';
import { words } from './words.js';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
/** Where nothing is set. */
const USUAL = ['GET', 'HEAD'];
/** The fields that the form changes; all others are shown by their names. */
const PLACED = new Set([
  'base_url', 'allowed_methods', 'default_headers', 'timeout_ms', 'max_response_chars', 'secrets',
]);

/**
 * The panel. `view` if the page may only look; `changed` once an act is on record.
 * @param {boolean} view
 * @param {() => Promise<void>} changed
 */
export function panel(view, changed) {
  const list = element('tbody');
  const card = element('article', { class: 'card' },
    element('p', { class: 'dim' }, words.chooseConnector));
  const head = element('tr', {}, [words.tool, words.classOf].map(
    (name) => element('th', { scope: 'col' }, name)));
  const table = element('table', { 'aria-label': words.connectors }, element('thead', {}, head), list);
  const fresh = /** @type {HTMLInputElement} */ (element('input', {
    id: 'fresh', maxlength: 64, spellcheck: 'false', autocomplete: 'off',
  }));
  const makes = element('form', {
    class: 'filter',
    onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      if (fresh.value.trim()) void choose(fresh.value.trim());
    },
  }, element('label', { for: 'fresh' }, words.newConnector), fresh,
    element('button', { type: 'submit' }, words.setUp));
  const root = element('section', { class: 'panel' }, element('h1', {}, words.connectors),
    view ? '' : makes,
    element('div', { class: 'split' }, element('div', {}, table), card));

  /** @param {any} connector */
  const has = (connector) => !view && connector.fields.length > 0;

  /** @param {any} one */
  const row = (one) => element('tr', {},
    element('td', {}, element('button', {
      class: 'link', onclick: () => void choose(one.tool),
    }, one.tool), element('div', { class: 'dim code' }, one.base_url ?? '')),
    element('td', { class: 'code' }, one.effect));

  /** @param {string} name */
  async function choose(name) {
    const note = element('p', { role: 'status' });
    try {
      const { card: shown, connector } = await api.connector(name);
      const wish = acting(card, note, changed, () => choose(name));
      card.replaceChildren(element('h2', {}, connector.tool),
        ...(has(connector) ? [form(connector, shown, wish)] : []), whole(connector, !has(connector)),
        ...secrets(connector, shown, wish), note,
        ...connector.advice.map((/** @type {string} */ line) => element('p', { class: 'dim' }, line)),
        element('p', { class: 'dim' }, words.command, ': ', element('code', {}, connector.command)));
    } catch (problem) {
      note.textContent = problem instanceof Error ? problem.message || words.gone : words.gone;
      card.replaceChildren(element('h2', {}, name), note);
    }
    card.scrollIntoView({ block: 'nearest' });
  }

  /**
   * The fields that are changed here.
   * @param {any} connector
   * @param {string} shown
   * @param {(act: () => Promise<any>) => Promise<void>} wish
   */
  function form(connector, shown, wish) {
    const { settings } = connector;
    /** @param {string} id @param {any} value @param {number} [usual] */
    const input = (id, value, usual) => /** @type {HTMLInputElement} */ (element('input', {
      id, value: value ?? '', spellcheck: 'false', autocomplete: 'off', placeholder: usual,
      ...(usual ? { type: 'number', min: 1 } : { maxlength: 1000 }),
    }));
    const base = input('base_url', settings.base_url);
    const timeout = input('timeout_ms', settings.timeout_ms, 10_000);
    const most = input('max_response_chars', settings.max_response_chars, 20_000);
    const had = headersOf(settings.default_headers);
    const headers = /** @type {HTMLTextAreaElement} */ (element('textarea', {
      id: 'default_headers', rows: 3, spellcheck: 'false', maxlength: 8000,
    }, had));
    const allowed = settings.allowed_methods ?? USUAL;
    const methods = METHODS.map((name) => {
      const box = /** @type {HTMLInputElement} */ (element('input', {
        type: 'checkbox', value: name, checked: allowed.includes(name),
      }));
      return { box, label: element('label', { class: 'switch' }, box, ' ', name) };
    });
    const note = element('p', { role: 'alert' });
    /** The fields that are not as they were; null takes one away. */
    const changes = () => {
      /** @type {Record<string, unknown>} */
      const all = {};
      /** @param {string} name @param {unknown} is @param {unknown} was */
      const field = (name, is, was) => { if (is !== was) all[name] = is === '' ? null : is; };
      field('base_url', base.value.trim(), settings.base_url ?? '');
      for (const [name, one] of /** @type {const} */ ([['timeout_ms', timeout], ['max_response_chars', most]])) {
        field(name, one.value === '' ? '' : Number(one.value), settings[name] ?? '');
      }
      const chosen = METHODS.filter((_, at) => methods[at].box.checked);
      // In the order of before, where nothing else differs.
      if (chosen.length !== allowed.length || chosen.some((one) => !allowed.includes(one))) {
        all.allowed_methods = chosen;
      }
      if (headers.value !== had) all.default_headers = headers.value.trim() ? headersIn(headers.value) : null;
      return all;
    };
    return element('form', {
      class: 'fields',
      onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        const wanted = changes();
        note.textContent = '';
        if (wanted.default_headers === undefined && 'default_headers' in wanted) {
          note.textContent = words.headersWrong;
        } else if (Object.keys(wanted).length === 0) {
          note.textContent = words.nothingChanged;
        } else {
          void wish(() => api.connect(shown, wanted));
        }
      },
    }, element('label', { for: 'base_url' }, words.baseUrl), base,
      element('span', {}, words.methods), element('div', {}, methods.map((one) => one.label)),
      element('label', { for: 'default_headers' }, words.headers), headers,
      element('label', { for: 'timeout_ms' }, words.timeout), timeout,
      element('label', { for: 'max_response_chars' }, words.mostChars), most,
      element('div', { class: 'acts' }, element('button', { class: 'main', type: 'submit' }, words.setIt), note));
  }

  /**
   * @param {any} connector
   * @param {string} shown
   * @param {(act: () => Promise<any>) => Promise<void>} wish
   */
  function secrets(connector, shown, wish) {
    if (connector.secrets.length === 0) return [];
    const items = connector.secrets.map((/** @type {any} */ one) => element('li', {},
      element('span', { class: 'code' }, one.name), ' ',
      element('span', { class: 'dim' }, one.is_set ? words.sentTo(one.origins.join(', ')) : words.notSet),
      ' ', !view && element('button', {
        class: 'small', onclick: () => void wish(() => api.secret(shown, one.name)),
      }, words.setSecret(one.name))));
    return [element('h3', {}, words.secrets), element('ul', { class: 'list' }, items),
      element('p', { class: 'dim' }, words.secretTyped)];
  }

  async function refresh() {
    const all = await api.connectors();
    fill(list, all, (one) => one.tool, row);
    return all.length;
  }

  return { root, refresh };
}

/**
 * What is set besides the fields of the form; all of it, where there is no form.
 * @param {any} connector
 * @param {boolean} all
 */
function whole(connector, all) {
  const list = element('dl');
  for (const [name, value] of Object.entries(connector.settings)) {
    if (PLACED.has(name) && !all) continue;
    const said = typeof value === 'string' ? value : JSON.stringify(value);
    list.append(element('dt', {}, name), element('dd', { class: 'code' }, said));
  }
  return list;
}

/** @param {Record<string, string> | undefined} headers */
function headersOf(headers) {
  return Object.entries(headers ?? {}).map(([name, value]) => `${name}: ${value}`).join('\n');
}

/**
 * The headers of some lines; nothing where one is none.
 * @param {string} text
 */
function headersIn(text) {
  /** @type {Record<string, string>} */
  const all = {};
  for (const line of text.split('\n').map((one) => one.trim()).filter((one) => one)) {
    const at = line.indexOf(':');
    if (at < 1) return undefined;
    all[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  return all;
}
