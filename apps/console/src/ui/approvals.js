// @ts-check
// The calls that wait, and one of them whole.

import * as api from './api.js';
import { changedLines, element, fill } from './dom.js';
import { leftUntil, words } from './words.js';

/** Fields of a call that have a place of their own; all others are shown by their names. */
const PLACED = new Set([
  'ask', 'standing', 'agent', 'tool', 'arguments', 'resources', 'conditions', 'location',
  'constraint', 'label', 'since', 'expires', 'expires_ms', 'approved', 'threshold', 'last_like',
  'answers', 'command', 'has_read', 'untrusted', 'elsewhere', 'proposals', 'uses_max', 'class',
  'still', 'can_sign', 'difference',
]);

/**
 * The panel. `view` if the page may only look; `changed` once an act is on record.
 * @param {boolean} view
 * @param {() => Promise<void>} changed
 */
export function panel(view, changed) {
  const list = element('tbody');
  const card = element('article', { class: 'card', 'aria-live': 'polite' });
  const empty = element('p', { class: 'dim', hidden: true }, words.none, ' ', words.noneHint);
  const head = element('tr', {}, [words.record, words.call, words.left].map(
    (name) => element('th', { scope: 'col' }, name)));
  const table = element('table', { 'aria-label': words.waiting }, element('thead', {}, head), list);
  const root = element('section', { class: 'panel' },
    element('h1', {}, words.approvals),
    element('div', { class: 'split' }, element('div', {}, table, empty), card));
  /** @type {number | null} */
  let chosen = null;
  /** True while something is typed or asked: the card stays as it is. */
  let held = false;

  /** @param {any} call */
  const row = (call) => element('tr', {},
    element('td', { class: 'number' }, element('button', {
      class: 'link', 'aria-current': call.ask === chosen,
      onclick: () => choose(call.ask),
    }, call.ask)),
    element('td', {}, element('div', {}, call.agent),
      element('div', { class: 'dim code' }, call.tool, '  ', call.resources.join(', ')),
      call.open === false && element('div', { class: 'dim' }, words.ended)),
    element('td', { class: 'number dim' }, leftUntil(call.expires_ms)));

  /** @param {number} ask */
  async function choose(ask) {
    chosen = ask;
    held = false;
    const { card: name, call } = await api.approval(ask);
    card.replaceChildren(...whole(call), ...(view ? [] : acts(name, call)), ...said(call));
    // Below the list, where the window is narrow.
    card.scrollIntoView({ block: 'nearest' });
    await refresh();
  }

  /**
   * @param {string} name
   * @param {any} call
   * @returns {HTMLElement[]}
   */
  function acts(name, call) {
    if (call.standing !== 'waits') return [element('p', {}, words.over)];
    const note = element('p', { role: 'status' });
    const why = /** @type {HTMLInputElement} */ (element('input', { id: 'why', maxlength: 1000 }));
    const bar = element('div', { class: 'acts' });
    /** @param {() => Promise<any>} act */
    const wish = async (act) => {
      held = true;
      for (const button of bar.querySelectorAll('button')) button.disabled = true;
      note.textContent = words.asked;
      try {
        const done = await act();
        note.textContent = words.done(done.record);
        bar.remove();
      } catch (problem) {
        note.textContent = problem instanceof Error ? problem.message || words.gone : words.gone;
        for (const button of bar.querySelectorAll('button')) button.disabled = false;
      }
      held = false;
      await changed();
    };
    const denies = element('form', {
      class: 'why', hidden: true,
      onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        const said = why.value ? { why: why.value } : {};
        void wish(() => api.answer({ card: name, answer: 'deny', ...said }));
      },
    }, element('label', { for: 'why' }, words.denyWhy), why,
      element('button', { class: 'stop', type: 'submit' }, words.deny));
    const uses = /** @type {HTMLInputElement} */ (element('input', {
      id: 'uses', type: 'number', min: 2, max: call.uses_max, value: Math.min(5, call.uses_max),
    }));
    const minutes = /** @type {HTMLInputElement} */ (element('input', {
      id: 'minutes', type: 'number', min: 1, max: 1440, value: 60,
    }));
    const gives = element('form', {
      class: 'why', hidden: true,
      onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        void wish(() => api.answer({
          card: name, answer: 'more', uses: Number(uses.value), minutes: Number(minutes.value),
        }));
      },
    }, element('label', { for: 'uses' }, words.uses), uses,
      element('label', { for: 'minutes' }, words.minutes), minutes,
      element('button', { type: 'submit' }, words.approveMore));
    const stop = element('button', {
      class: 'stop', onclick: () => void wish(() => api.freeze(call.agent)),
    }, words.freeze(call.agent));
    if (!call.can_sign) {
      // Whose key is elsewhere answers there.
      bar.append(stop);
      return [element('p', { class: 'code' }, words.signElsewhere(call.ask)), bar, note];
    }
    bar.append(
      element('button', {
        class: 'main', onclick: () => void wish(() => api.answer({ card: name, answer: 'once' })),
      }, words.once),
      ...(call.uses_max > 1 ? [element('button', {
        onclick: () => { held = true; gives.hidden = false; uses.focus(); },
      }, words.forMore)] : []),
      element('button', {
        class: 'stop', onclick: () => { held = true; denies.hidden = false; why.focus(); },
      }, `${words.deny}...`),
      stop, gives, denies);
    return [bar, note];
  }

  async function refresh() {
    const calls = await api.approvals();
    fill(list, calls, (call) => String(call.ask), row);
    for (const link of list.querySelectorAll('button')) {
      link.setAttribute('aria-current', String(link.textContent === String(chosen)));
    }
    empty.hidden = calls.length > 0;
    table.hidden = calls.length === 0;
    const waits = calls.some((/** @type {any} */ call) =>
      call.ask === chosen && call.standing === 'waits');
    if (chosen !== null && !waits && !held) {
      // What was answered elsewhere loses its buttons in place.
      card.querySelector('.acts')?.replaceWith(element('p', {}, words.over));
    }
    return calls.length;
  }

  card.append(element('p', { class: 'dim' }, words.choose));
  return { root, refresh };
}

/**
 * All of a call.
 * @param {any} call
 * @returns {HTMLElement[]}
 */
function whole(call) {
  const title = element('h2', {}, call.agent, ' ', call.tool);
  const tags = element('p', { class: 'tags' },
    call.class && element('span', { class: 'tag' }, call.class),
    call.untrusted && element('span', { class: 'tag warn' }, words.untrusted),
    element('span', { class: 'tag' }, leftUntil(call.expires_ms)));
  const list = element('dl');
  /** @param {string} name @param {string[]} values @param {boolean} [code] */
  const add = (name, values, code = false) => {
    list.append(element('dt', {}, name),
      ...values.map((value) => element('dd', { class: code && 'code' }, value)));
  };
  add(words.touches, call.resources, true);
  const conditions = call.conditions.map((/** @type {any} */ one) =>
    `${one.subject}: ${one.kind} ${one.seen ?? words.nothingThere}`);
  add(words.mustBe, conditions.length ? conditions : [words.notLooked], true);
  if (call.location) add(words.where, [call.location], true);
  add(words.asksBecause, [call.constraint ?? '']);
  add(words.hasSeen, [call.label]);
  if (call.has_read?.newest.length) {
    add(words.hasRead, [
      ...call.has_read.newest.map((/** @type {any} */ one) => words.readBy(one.tool, one.record)),
      ...(call.has_read.more ? [words.andMore(call.has_read.more)] : []),
    ]);
  }
  add(words.lastLike, lastLike(call.last_like));
  if (call.threshold > 1 || !call.can_sign) {
    add(words.answers, [words.signed(call.approved, call.threshold),
      ...call.answers.map((/** @type {any} */ one) => words.signedBy(one.signed_by, one.record)),
      ...(call.still.length ? [words.still(call.still)] : [])]);
  }
  add(words.since, [call.since]);
  add(words.expires, [call.expires]);
  for (const [name, value] of Object.entries(call)) {
    if (!PLACED.has(name)) add(name, [JSON.stringify(value)], true);
  }
  return [title, tags, list, ...difference(call), element('h3', {}, words.arguments),
    ...given(call.arguments)];
}

/**
 * What would change in the file that the call is bound to.
 * @param {any} call
 * @returns {HTMLElement[]}
 */
function difference(call) {
  if (call.difference === null) {
    return call.conditions.length ? [element('p', { class: 'dim' }, words.noDifference)] : [];
  }
  return [element('h3', {}, words.fileChanges), changedLines(words.fileChanges, call.difference)];
}

/**
 * All arguments, whole: texts with their lines, all else as JSON.
 * @param {Record<string, unknown> | null} values
 * @returns {HTMLElement[]}
 */
function given(values) {
  if (values === null) return [element('p', {}, words.erased)];
  return Object.entries(values).flatMap(([name, value]) => {
    const is = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
    const kind = typeof value === 'string' ? words.text : words.json;
    return [element('p', { class: 'name' }, name, ' ', element('span', { class: 'dim' }, kind)),
      element('pre', { tabindex: 0, 'aria-label': name }, is)];
  });
}

/**
 * @param {any} like
 * @returns {string[]}
 */
function lastLike(like) {
  if (!like) return [words.noneLike];
  const changed = [...(like.changed ?? []), ...(like.location ? [like.location] : [])];
  const lines = changed.map((/** @type {any} */ one) =>
    words.differs(one.name, JSON.stringify(one.is), JSON.stringify(one.was)));
  return [`${words.record} ${like.intent}`, ...(lines.length ? lines : [words.sameAsLast])];
}

/**
 * The command that does the same.
 * @param {any} call
 * @returns {HTMLElement[]}
 */
function said(call) {
  return call.command
    ? [element('p', { class: 'dim' }, words.command, ': ', element('code', {}, call.command))]
    : [];
}
