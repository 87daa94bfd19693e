// @ts-check
// What an act came to, in words.

import { words } from './words.js';

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
