// @ts-check
// What this page asks of the console. The token stays in this module, and is gone with the page.

/** @type {string | null} */
let token = null;

/** What could not be had, and why. */
export class Problem extends Error {
  /**
   * @param {number} status
   * @param {string} reason
   * @param {string} words
   */
  constructor(status, reason, words) {
    super(words);
    this.status = status;
    this.reason = reason;
  }
}

/**
 * @param {string} path
 * @param {Record<string, unknown>} [given]
 * @returns {Promise<any>}
 */
async function ask(path, given) {
  /** @type {Record<string, string>} */
  const headers = {};
  if (token !== null) headers.authorization = `Bearer ${token}`;
  if (given !== undefined) headers['content-type'] = 'application/json';
  const body = given === undefined ? undefined : JSON.stringify(given);
  const method = given === undefined ? 'GET' : 'POST';
  const response = await fetch(`/api/v1/${path}`, { method, headers, body });
  if (response.ok) return response.json();
  const said = await response.json().catch(() => null);
  const { reason = 'refused', words = '' } = said?.error ?? {};
  throw new Problem(response.status, String(reason), String(words));
}

/**
 * Enters by the code that the terminal shows. True if this page may only look.
 * @param {string} code
 * @returns {Promise<boolean>}
 */
export async function enter(code) {
  const said = await ask('login', { code });
  token = String(said.token);
  return said.view === true;
}

export const status = () => ask('status');
export const approvals = () => ask('approvals');
/** @param {number} number */
export const approval = (number) => ask(`approvals/${number}`);
/** @param {Record<string, unknown>} stretch */
export const timeline = (stretch) => ask('timeline', stretch);
/** @param {number} seq */
export const record = (seq) => ask(`log/${seq}`);
export const home = () => ask('home');
export const agents = () => ask('agents');
/** @param {string} agent @param {string[]} keep */
export const paths = (agent, keep) => ask('paths', { agent, keep });
/** @param {string} token */
export const revoke = (token) => ask('revoke', { token });
/** @param {string} agent */
export const thaw = (agent) => ask('thaw', { agent });
export const tools = () => ask('tools');
/** @param {string} tool */
export const tool = (tool) => ask('tool', { tool });
/** @param {string} card */
export const accept = (card) => ask('accept', { card });
/** @param {string} agent @param {string} tool */
export const narrow = (agent, tool) => ask('narrow', { agent, tool });
/** @param {string} agent @param {string} tool */
export const gift = (agent, tool) => ask('gift', { agent, tool });
/** @param {string} card */
export const give = (card) => ask('give', { card });
export const connectors = () => ask('connectors');
/** @param {string} tool */
export const connector = (tool) => ask('connector', { tool });
/** @param {string} card @param {Record<string, unknown>} changes */
export const connect = (card, changes) => ask('connect', { card, changes });
/** @param {string} card @param {string} name */
export const secret = (card, name) => ask('secret', { card, name });
/** @param {Record<string, unknown>} wish */
export const answer = (wish) => ask('answer', wish);
/** @param {string} agent */
export const freeze = (agent) => ask('freeze', { agent });

/**
 * Tells of changes until the page has ended or the console has gone.
 * @param {() => void} changed
 * @param {AbortSignal} signal
 */
export async function watch(changed, signal) {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch('/api/v1/live', { headers, signal });
  if (!response.ok || !response.body) throw new Problem(response.status, 'live', '');
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop() ?? '';
    if (lines.some((line) => JSON.parse(line).changed)) changed();
  }
}
