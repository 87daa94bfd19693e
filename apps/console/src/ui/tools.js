// @ts-check
// The tools: what each is and needs, how it stands, and which agents have a token for it.

import * as api from './api.js';
import { acting } from './done.js';
import { changedLines, element, fill } from './dom.js';
import { words } from './words.js';

/** Fields of a tool that have a place of their own; all others are shown by their names. */
const PLACED = new Set([
  'tool', 'title', 'effect', 'standing', 'label', 'description', 'arguments', 'permissions', 'limits',
  'aliases', 'can_be_called', 'why_not', 'changes', 'on_record', 'on_record_definition', 'offered',
  'offered_definition', 'offered_manifest', 'settings', 'agents',
]);

/**
 * The panel. `view` if the page may only look; `changed` once an act is on record.
 * @param {boolean} view
 * @param {() => Promise<void>} changed
 */
export function panel(view, changed) {
  const list = element('tbody');
  const card = element('article', { class: 'card' }, element('p', { class: 'dim' }, words.chooseTool));
  const search = /** @type {HTMLInputElement} */ (element('input', {
    id: 'search', maxlength: 64, spellcheck: 'false', oninput: () => void show(),
  }));
  const empty = element('p', { class: 'dim', hidden: true }, words.noTools);
  const head = element('tr', {}, [words.tool, words.standing, words.classOf].map(
    (name) => element('th', { scope: 'col' }, name)));
  const table = element('table', { 'aria-label': words.tools }, element('thead', {}, head), list);
  const root = element('section', { class: 'panel' }, element('h1', {}, words.tools),
    element('form', { class: 'filter', onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
      element('label', { for: 'search' }, words.search), search),
    element('div', { class: 'split' }, element('div', {}, table, empty), card));
  /** @type {any} */
  let store = { tools: [], agents: [] };
  /** @type {string | null} */
  let chosen = null;

  /** @param {any} tool */
  const row = (tool) => element('tr', {},
    element('td', {}, element('button', {
      class: 'link', onclick: () => void choose(tool.tool),
    }, tool.tool), element('div', { class: 'dim' }, tool.title)),
    element('td', {}, element('span', { class: tool.standing === 'changed' && 'tag warn' }, tool.standing)),
    element('td', { class: 'code' }, tool.effect));

  function show() {
    const wanted = search.value.trim().toLowerCase();
    const found = store.tools.filter((/** @type {any} */ tool) =>
      `${tool.tool} ${tool.title ?? ''} ${tool.effect} ${tool.standing}`.toLowerCase().includes(wanted));
    fill(list, found, (tool) => tool.tool, row);
    empty.hidden = found.length > 0;
    table.hidden = found.length === 0;
  }

  /** @param {string} name */
  async function choose(name) {
    chosen = name;
    const { card: shown, tool } = await api.tool(name);
    const note = element('p', { role: 'status' });
    const wish = acting(card, note, changed, () => choose(name));
    card.replaceChildren(...whole(tool), ...difference(tool, shown, wish), ...switches(tool, wish), note);
    card.scrollIntoView({ block: 'nearest' });
  }

  /**
   * The difference of a changed definition, and the act that accepts it.
   * @param {any} tool
   * @param {string} shown
   * @param {(act: () => Promise<any>) => Promise<void>} wish
   */
  function difference(tool, shown, wish) {
    if (!tool.offered_manifest) return [];
    return [element('h3', {}, words.changes), changedLines(words.changes, tool.changes ?? []),
      view ? null : element('div', { class: 'acts' }, element('button', {
        class: 'main', onclick: () => void wish(() => api.accept(shown)),
      }, words.accept))].filter((one) => one !== null);
  }

  /**
   * A box for each agent: off takes the tool from its tokens at once.
   * @param {any} tool
   * @param {(act: () => Promise<any>) => Promise<void>} wish
   */
  function switches(tool, wish) {
    const known = store.tools.find((/** @type {any} */ one) => one.tool === tool.tool);
    const has = new Set(known?.agents ?? []);
    if (store.agents.length === 0) return [element('p', { class: 'dim' }, words.noAgents)];
    const boxes = store.agents.map((/** @type {string} */ agent) => {
      const box = /** @type {HTMLInputElement} */ (element('input', {
        type: 'checkbox', checked: has.has(agent), disabled: view,
        onchange: () => {
          if (box.checked) {
            // To give is no click's: the token is shown first, and asked about at the terminal.
            box.checked = false;
            void offer(agent);
            return;
          }
          void wish(() => api.narrow(agent, tool.tool));
        },
      }));
      return element('label', { class: 'switch' }, box, ' ', agent);
    });
    const place = element('div', { role: 'note' });
    /** @param {string} agent */
    const offer = async (agent) => {
      try {
        const { card: shown, gift } = await api.gift(agent, tool.tool);
        place.replaceChildren(element('h3', {}, words.giveHead(agent, tool.tool)),
          element('p', {}, words.inPlaceOf(gift.token, gift.expires)),
          element('dl', {}, gift.scopes.flatMap((/** @type {any} */ one) => [
            element('dt', {}, one.dimension), element('dd', { class: 'code' }, one.scope)])),
          gift.lacks.length ? element('p', {}, words.lacks(gift.lacks)) : '',
          element('div', { class: 'acts' }, element('button', {
            class: 'main', onclick: () => void wish(() => api.give(shown)),
          }, words.giveIt)),
          element('p', { class: 'dim' }, words.command, ': ', element('code', {}, gift.command)));
      } catch (problem) {
        place.textContent = problem instanceof Error ? problem.message || words.gone : words.gone;
      }
    };
    return [element('h3', {}, words.agentsWith), ...boxes, place];
  }

  async function refresh() {
    store = await api.tools();
    show();
    return store.tools.length;
  }

  return { root, refresh, chosen: () => chosen };
}

/**
 * All of a tool.
 * @param {any} tool
 * @returns {HTMLElement[]}
 */
function whole(tool) {
  const tags = element('p', { class: 'tags' },
    element('span', { class: 'tag' }, tool.effect),
    element('span', { class: tool.standing === 'changed' ? 'tag warn' : 'tag' }, tool.standing),
    tool.can_be_called === false && element('span', { class: 'tag warn' }, tool.why_not));
  const list = element('dl');
  /** @param {string} name @param {string[]} values @param {boolean} [code] */
  const add = (name, values, code = false) => {
    if (values.length === 0) return;
    list.append(element('dt', {}, name),
      ...values.map((value) => element('dd', { class: code && 'code' }, value)));
  };
  add(words.description, [tool.description]);
  add(words.needs, tool.permissions.length
    ? tool.permissions.map((/** @type {any} */ one) => `${one.about} (${one.given_by})`)
    : [words.needsNothing]);
  add(words.arguments, tool.arguments.map((/** @type {any} */ one) =>
    `${one.name}: ${one.type}${one.required ? '' : words.optional} ${one.description}`));
  if (tool.settings) add(words.settings, [JSON.stringify(tool.settings)], true);
  add(words.limits, [JSON.stringify(tool.limits)], true);
  for (const [name, value] of Object.entries(tool)) {
    if (!PLACED.has(name) && value !== null) add(name, [JSON.stringify(value)], true);
  }
  return [element('h2', {}, tool.tool), tags, list];
}
