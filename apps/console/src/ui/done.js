// @ts-check
// What an act came to, in words.

import { words } from './words.js';

/**
 * Acts of a card, which is shown anew after each with what it came to.
 * @param {HTMLElement} card
 * @param {HTMLElement} note
 * @param {() => Promise<void>} changed
 * @param {() => Promise<void>} again
 * @returns {(act: () => Promise<any>) => Promise<void>}
 */
export function acting(card, note, changed, again) {
  return async (act) => {
    await done(note, act);
    await changed();
    const said = note.textContent;
    await again();
    const place = card.querySelector('[role=status]');
    if (place) place.textContent = said;
  };
}

/**
 * Does an act, and says in a note what it came to.
 * @param {HTMLElement} note
 * @param {() => Promise<any>} act
 */
export async function done(note, act) {
  note.textContent = words.working;
  try {
    const { record, said } = await act();
    const all = [record && words.done(record), said].filter((one) => one);
    note.textContent = all.join(' ') || words.nothingChanged;
  } catch (problem) {
    note.textContent = problem instanceof Error ? problem.message || words.gone : words.gone;
  }
}
