// @ts-check
// What an act came to, in words.

import { plain } from './dom.js';
import { words } from './words.js';

/**
 * Acts of a card, which is shown anew after each. What the act came to is said once the card is the new
 * one: a click on what it then says can't be lost with the old.
 * @param {HTMLElement} card
 * @param {HTMLElement} note
 * @param {() => Promise<void>} changed
 * @param {() => Promise<void>} again
 * @returns {(act: () => Promise<any>) => Promise<void>}
 */
export function acting(card, note, changed, again) {
  return async (act) => {
    note.textContent = words.working;
    const said = await outcome(act);
    try {
      await changed();
      await again();
    } finally {
      const place = card.querySelector('[role=status]');
      if (place) place.textContent = said;
    }
  };
}

/**
 * Does an act, and says in words what it came to.
 * @param {() => Promise<any>} act
 */
export async function outcome(act) {
  try {
    const { record, said } = await act();
    const all = [record && words.done(record), said].filter((one) => one);
    return plain(all.join(' ')) || words.nothingChanged;
  } catch (problem) {
    return problem instanceof Error ? plain(problem.message) || words.gone : words.gone;
  }
}
