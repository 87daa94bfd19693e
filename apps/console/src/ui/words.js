// @ts-check
// All that the page says.

export const words = {
  title: 'syscap',
  enter: 'Enter',
  code: 'Code',
  codeHint:
    'The terminal that runs `syscap console` shows a code of 8 letters. This page never asks for a passphrase: a page that does is false.',
  codeWrong: 'That is not the code, or it is over. Press c at the terminal for another one.',
  ended: 'session ended',
  pageEnded: 'This page has ended. Press c at the terminal for a code, and enter again.',
  gone: 'The console has ended, or does not answer.',
  panels: 'Panels',
  approvals: 'Approvals',
  home: 'Home',
  agents: 'Agents',
  tokens: 'Tokens',
  token: 'Token',
  chooseAgent: 'Choose an agent to see its tokens and paths.',
  frozen: 'frozen',
  runs: 'runs',
  /** @param {string} agent */
  thaw: (agent) => `Let ${agent} run again`,
  /** @param {string} token */
  revoke: (token) => `Revoke ${token}`,
  paths: 'Paths',
  remove: 'Remove',
  /** @param {string} path */
  removePath: (path) => `Remove ${path}`,
  addPath: 'Add one at a terminal: syscap token reissue HOME TOKEN --read PATH --left',
  /** @param {number} left @param {number} limit */
  leftOf: (left, limit) => `${left} of ${limit} left`,
  derivedFrom: 'Derived from',
  resume: 'Resume',
  resumeFollows: 'What is changed here is written into it; all else in it keeps its bytes.',
  /** @param {string} why */
  resumeLeft: (why) => `It can't be read, and is left as it is: ${why}`,
  tools: 'Tools',
  search: 'Search',
  standing: 'Standing',
  classOf: 'Class',
  chooseTool: 'Choose a tool to see what it is and needs.',
  noTools: 'No tool is like that.',
  noAgents: 'No agent has a valid token. Issue one with: syscap token issue HOME --agent NAME --tool TOOL',
  agentsWith: 'Agents that may call it',
  /** @param {string} agent @param {string} tool */
  giveHead: (agent, tool) => `Give ${agent} ${tool}`,
  /** @param {string} token @param {string} until */
  inPlaceOf: (token, until) =>
    `A token in the place of ${token.slice(0, 12)}: what that grants and this, what is left, until ${until}`,
  /** @param {string[]} needs */
  lacks: (needs) => `It needs ${needs.join(', ')}, and no token of this agent has any: give it at a terminal with --read, --write or --scope.`,
  giveIt: 'Give it as shown',
  description: 'What it does',
  needs: 'Needs',
  needsNothing: 'nothing besides the tool itself',
  optional: ' (may be left out)',
  settings: 'Settings',
  limits: 'Limits',
  changes: 'What differs from the definition on record',
  fileChanges: 'What would change in the file',
  noDifference: 'What would change in the file can\'t be shown: it is another by now, no text, too large, or its name can\'t be read.',
  accept: 'Accept as shown',
  working: 'Asked: where a question stands at the terminal, answer there.',
  nothingChanged: 'Nothing was changed.',
  connectors: 'Connectors',
  chooseConnector: 'Choose a tool to see where it sends requests, or name a new one.',
  newConnector: 'New tool',
  setUp: 'Set up',
  baseUrl: 'Base URL',
  methods: 'Methods',
  headers: 'Headers (a line each, Name: value)',
  headersWrong: 'A line of the headers has no name before a colon.',
  timeout: 'Time limit (ms)',
  mostChars: 'Longest answer (characters)',
  setIt: 'Set it',
  secrets: 'Secrets',
  notSet: 'not set',
  /** @param {string} places */
  sentTo: (places) => `sent to ${places}`,
  /** @param {string} name */
  setSecret: (name) => `Set ${name}`,
  secretTyped: 'A value is typed at the terminal, and never here.',
  timeline: 'Timeline',
  when: 'Time',
  happened: 'Call and outcome',
  sinceAge: 'Since',
  refused: 'refused only',
  outside: 'outside only',
  filter: 'Filter',
  older: 'Older',
  chooseRecord: 'Choose a record to see all of it, with fields that nobody knows.',
  /** @param {number} lines @param {number} read */
  looked: (lines, read) => `${lines} lines of ${read} records looked at`,
  waiting: 'Waiting calls',
  none: 'No call waits for a person.',
  noneHint: 'One that the policy asks about appears here. Try the policy with: syscap policy test',
  record: 'Record',
  call: 'Call',
  left: 'Left',
  choose: 'Choose a call to see all of it.',
  untrusted: 'has read untrusted content',
  once: 'Approve once',
  forMore: 'For more calls...',
  uses: 'Calls that touch nothing else',
  minutes: 'Minutes',
  approveMore: 'Approve them',
  deny: 'Deny',
  denyWhy: 'Why (the agent is told)',
  cancel: 'Back',
  /** @param {string} agent */
  freeze: (agent) => `Freeze ${agent}`,
  asked: 'Asked at the terminal: answer there.',
  /** @param {number} record */
  done: (record) => `On record ${record}.`,
  over: 'This call waits no longer.',
  command: 'The same at a terminal',
  arguments: 'Arguments',
  erased: 'erased',
  text: 'text',
  json: 'JSON',
  touches: 'Touches',
  mustBe: 'Must still be',
  notLooked: 'was not looked at: nothing binds what is there when it runs',
  nothingThere: 'nothing is there',
  where: 'Where',
  asksBecause: 'Asks because',
  hasSeen: 'Session has seen',
  hasRead: 'Untrusted, read before',
  /** @param {string} tool @param {number} record */
  readBy: (tool, record) => `${tool} (record ${record})`,
  /** @param {number} count */
  andMore: (count) => `and ${count} more`,
  lastLike: 'Last like it',
  noneLike: 'none was approved before',
  sameAsLast: 'the same arguments',
  /** @param {string} name @param {string} is @param {string} was */
  differs: (name, is, was) => `${name}: ${is}, was ${was}`,
  answers: 'Signed by',
  /** @param {number} approved @param {number} threshold */
  signed: (approved, threshold) => `${approved} of ${threshold}`,
  /** @param {{ key: string, name: string | null }[]} keys @param {number} record */
  signedBy: (keys, record) =>
    `${keys.map((one) => one.name ?? one.key.slice(0, 12)).join(', ')} (record ${record})`,
  /** @param {string[]} keys */
  still: (keys) => `still: ${keys.join(', ')}`,
  /** @param {number} ask */
  signElsewhere: (ask) =>
    `No key that still counts lies here: syscap approvals export HOME ${ask}, then sign there, and bring`,
  expires: 'Expires',
  since: 'Since',
  agent: 'Agent',
  tool: 'Tool',
  more: 'More',
};

/**
 * How long something lasts, in words.
 * @param {number} until
 */
export function leftUntil(until) {
  const minutes = Math.max(0, Math.ceil((until - Date.now()) / 60000));
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h`;
}
