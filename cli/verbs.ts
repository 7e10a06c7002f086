/**
 * Every verb of this program: one table that the parser, `--help`, the man page's test and the README's test read.
 *
 * A body is imported only when its verb is called, since imports dominate the cost of a short command.
 */
import { AGENTS } from '../lib/agents/step.js';
import type { OptionDefinition, PositionalDefinition, VerbDefinition } from './verb.js';

/** Options of every verb. */
export const GLOBAL_OPTIONS = {
  C: { type: 'string', value: 'DIR', describe: 'Work as if started in DIR' },
  json: { type: 'boolean', describe: 'Print one JSON document on standard output' },
} as const satisfies Readonly<Record<string, OptionDefinition>>;

const one = (name: string, describe: string): PositionalDefinition => ({
  name,
  describe,
  required: true,
  many: false,
});
const maybe = (name: string, describe: string): PositionalDefinition => ({
  name,
  describe,
  required: false,
  many: false,
});
const paths = (describe: string): PositionalDefinition => ({
  name: 'path',
  describe,
  required: false,
  many: true,
});

const flag = (describe: string): OptionDefinition => ({ type: 'boolean', describe });
const text = (value: string, describe: string): OptionDefinition => ({ type: 'string', value, describe });
const number = (value: string, describe: string): OptionDefinition => ({ type: 'number', value, describe });

type Reading = Pick<VerbDefinition, 'positionals' | 'options' | 'rest'>;
const plain: Reading = { positionals: [], options: {}, rest: 'none' };

const SETUP: readonly VerbDefinition[] = [
  {
    ...plain,
    name: 'init',
    describe: 'Give this work tree an id, the hooks of the fence and those of agents',
    options: {
      agent: {
        type: 'string',
        value: 'NAME',
        choices: [...AGENTS, 'none'],
        describe:
          "Install this agent's hooks; more than once for more than one; default: those found on PATH",
      },
      shared: flag("Put agents' hooks into the files of theirs that are committed, in place of local ones"),
      fence: {
        type: 'string',
        value: 'MODE',
        choices: ['strict', 'hooks', 'off'],
        describe: 'How manual staging is refused in a turn: index.lock and hooks, hooks alone, or not at all',
      },
      'dry-run': flag('Only print what would be touched'),
    },
    load: () => import('./verbs/init.js'),
  },
  {
    ...plain,
    name: 'uninstall',
    describe: 'Remove exactly what init and the turns since have added',
    options: {
      purge: flag('Also remove every ref of ours: the ledgers, the checkpoints and their contents are gone'),
      interrupted: flag('With --purge: even where a turn waits for recovery'),
    },
    load: () => import('./verbs/uninstall.js'),
  },
];

const STATE: readonly VerbDefinition[] = [
  {
    ...plain,
    name: 'status',
    describe: 'Show the lease, the turn, what was interrupted and what waits for a decision',
    options: { 'exit-code': flag('Exit 3 when something needs attention') },
    load: () => import('./verbs/status.js'),
  },
  {
    ...plain,
    name: 'doctor',
    describe: 'Find what is broken and say what mends it',
    options: { fix: flag('Mend it') },
    load: () => import('./verbs/doctor.js'),
  },
  {
    ...plain,
    name: 'log',
    describe: 'Show the events of a task, oldest first',
    positionals: [maybe('task', "The task; default: the work tree's current or last one")],
    options: {
      turn: text('TURN', 'Only events of this turn'),
      type: text('TYPE', 'Only events of this type'),
      number: { ...number('N', 'Only the last N events'), alias: 'n' },
      usage: flag('Tokens, cost, models and time in place of events, by day, task and agent'),
      by: {
        type: 'string',
        value: 'WHAT',
        choices: ['day', 'turn', 'call'],
        describe: 'With --usage: a row for each day (the default), turn or call',
      },
    },
    load: () => import('./verbs/log.js'),
  },
  {
    ...plain,
    name: 'show',
    describe: 'Show an event, turn, call, approval, checkpoint or task by any id prefix',
    positionals: [one('id', 'An id, a prefix of one, a commit, or the number of an event')],
    load: () => import('./verbs/show.js'),
  },
  {
    ...plain,
    name: 'verify',
    describe: 'Check the SHA-256 chain, the objects and the epochs',
    positionals: [maybe('task', 'The task; default: every one')],
    options: {
      contents: flag('Read every file of every checkpoint too, and hold its bytes to its id'),
    },
    load: () => import('./verbs/verify.js'),
  },
  {
    ...plain,
    name: 'check',
    describe: 'Hold what a turn claims at its end against its baseline and its events',
    positionals: [maybe('turn', 'The turn; default: the newest finished one of this work tree')],
    options: {
      note: flag('Write it as a note on the commit that contains the work, if it is not there yet'),
    },
    load: () => import('./verbs/check.js'),
  },
  {
    ...plain,
    name: 'lease',
    describe: 'Show who holds the work tree, or give it up',
    positionals: [{ ...maybe('action', 'Give the lease up'), choices: ['release'] }],
    load: () => import('./verbs/lease.js'),
  },
];

const FILES: readonly VerbDefinition[] = [
  {
    ...plain,
    name: 'recover',
    describe: 'Report what an interrupted turn left, or repair it',
    options: {
      'roll-back': flag('Put every file of the turn back to where it was at its start'),
      'roll-forward': flag('Bring every file of the turn to its last intended content'),
      keep: flag('Leave every file as it is and record the verdicts'),
      'take-over': flag('End the recorded processes of a live but stuck holder first'),
      turn: text('TURN', 'The turn, when more than one is interrupted'),
      all: flag('Report on every work tree'),
    },
    load: () => import('./verbs/recover.js'),
  },
  {
    ...plain,
    name: 'orphans',
    describe: 'List processes and containers that a dead or a finished turn left running, or end them',
    options: { stop: flag('End exactly those: TERM, then KILL') },
    load: () => import('./verbs/orphans.js'),
  },
  {
    ...plain,
    name: 'checkpoint',
    describe: 'Take a byte-exact snapshot of the work tree',
    positionals: [paths('Kept even when ignored; a file itself also over the limit')],
    options: { message: { ...text('TEXT', 'What it is'), alias: 'm' } },
    rest: 'positional',
    load: () => import('./verbs/checkpoint.js'),
  },
  {
    ...plain,
    name: 'checkpoints',
    describe: 'List the snapshots, oldest first',
    load: () => import('./verbs/checkpoints.js'),
  },
  {
    ...plain,
    name: 'diff',
    describe: 'Compare two checkpoints, or one with the work tree',
    positionals: [one('a', 'A checkpoint'), maybe('b', 'Another one; default: the work tree')],
    load: () => import('./verbs/diff.js'),
  },
  {
    ...plain,
    name: 'restore',
    describe:
      'Bring the work tree, or some paths, back to a checkpoint; undone by restoring the one it prints',
    positionals: [one('checkpoint', 'The checkpoint'), paths('A file, or a folder and all below it')],
    options: { 'dry-run': flag('Only print what would change') },
    rest: 'positional',
    load: () => import('./verbs/restore.js'),
  },
];

const DECISIONS: readonly VerbDefinition[] = [
  {
    ...plain,
    name: 'conflicts',
    describe: 'List external changes that met a write, or compare one: base, theirs, mine',
    positionals: [maybe('id', 'The conflict to compare')],
    load: () => import('./verbs/conflicts.js'),
  },
  {
    ...plain,
    name: 'resolve',
    describe: 'Decide a conflict; the path is free again',
    positionals: [one('id', 'The conflict')],
    options: {
      'use-latest': flag('What is there now stays'),
      'keep-mine': flag('Put what was to come there; what is there is kept in a checkpoint'),
    },
    load: () => import('./verbs/resolve.js'),
  },
  {
    ...plain,
    name: 'rewind',
    describe: 'Take the conversation back; files stay. Without a target: show it, what was rewound marked',
    positionals: [
      maybe('target', 'A turn (to before it), or the number of an event, or TASK/NUMBER (to after it)'),
    ],
    options: {
      task: text('TASK', 'Show the conversation of this task'),
      reason: text('TEXT', 'Why'),
    },
    load: () => import('./verbs/rewind.js'),
  },
];

const WORK: readonly VerbDefinition[] = [
  {
    ...plain,
    name: 'run',
    describe: 'Run a command as one turn, under the lease',
    options: {
      worktree: flag('Make a linked work tree beside this one, with a branch of its own, and run it there'),
      objective: text('TEXT', 'What it is for; default: the command line'),
      task: text('ID', "The task, or 'new'"),
      result: text('FILE', "Take the agent's final text from there, for 'check'"),
      report: text('FILE', 'Write {turn, started, exit, signal} there at the end'),
      recover: {
        type: 'string',
        value: 'HOW',
        choices: ['keep', 'roll-back', 'roll-forward'],
        describe: 'What to do about interrupted work first',
      },
    },
    rest: 'command',
    load: () => import('./verbs/run.js'),
  },
  {
    ...plain,
    name: 'op',
    describe: 'Run one git command while no turn can start; refused under a turn',
    options: { beside: flag('Run it beside the turn that holds the work tree all the same, and record it') },
    rest: 'command',
    load: () => import('./verbs/op.js'),
  },
  {
    ...plain,
    name: 'shell-init',
    describe: 'Print a shell function that says who holds the work tree when git is refused',
    load: () => import('./verbs/shell-init.js'),
  },
  {
    ...plain,
    name: 'ask',
    describe: 'Ask for approval of exact arguments, in the current turn',
    options: {
      tool: text('NAME', 'The tool that wants to run'),
      args: text('JSON', 'Its exact arguments, or @FILE'),
      wait: number('SECONDS', 'Wait that long for the answer'),
      expires: number('SECONDS', 'Neither answered nor used after that time'),
      'invalid-on-change': flag('Neither answered nor used once the work tree has changed since the request'),
    },
    rest: 'command',
    load: () => import('./verbs/ask.js'),
  },
  {
    ...plain,
    name: 'approvals',
    describe: 'List decisions, oldest first',
    load: () => import('./verbs/approvals.js'),
  },
  {
    ...plain,
    name: 'approve',
    describe: 'Approve a request',
    positionals: [one('id', 'The approval')],
    load: () => import('./verbs/approve.js'),
  },
  {
    ...plain,
    name: 'reject',
    describe: 'Reject a request and say why',
    positionals: [one('id', 'The approval')],
    options: { feedback: text('TEXT', 'Given to the agent verbatim') },
    load: () => import('./verbs/reject.js'),
  },
  {
    ...plain,
    name: 'drill',
    describe: 'Kill an agent at a random moment and check what is known afterwards',
    options: {
      rounds: number('N', 'How many kills; default 5, of a real agent 3'),
      seed: number('S', 'Number of the first round; the same number gives the same round'),
      agent: text(
        'NAME',
        'A real agent to kill: claude-code, codex, opencode or kilo; default a scripted one',
      ),
      bare: flag('With a real agent: what it knows without this program'),
    },
    load: () => import('./verbs/drill.js'),
  },
];

export const VERBS: readonly VerbDefinition[] = [...SETUP, ...STATE, ...FILES, ...DECISIONS, ...WORK];
