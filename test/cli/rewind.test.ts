import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { document, events, last } from '../helpers/events.js';
import { durable, PROGRAM } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

/** A turn of one conversation, by its id. */
function turn(place: Scratch, word: string): string {
  const task = last(events(place), 'turn.started')?.['task'];
  const of = typeof task === 'string' ? ['--task', task] : [];
  const ran = durable(place, ['run', ...of, '--objective', word, '--', 'sh', '-c', `echo ${word} > ${word}`]);
  if (ran.code !== 0) throw new Error(ran.stderr);
  return String(last(events(place), 'turn.started')?.['turn']);
}

interface Told {
  readonly turns: readonly { readonly objective: string; readonly rewound: boolean }[];
}

const told = (place: Scratch): string[] =>
  document<Told>(place, ['rewind']).turns.map((one) => `${one.objective}${one.rewound ? ' rewound' : ''}`);

test('rewind TURN takes the conversation back to before it, files stay, and what it prints undoes it', (t) => {
  const place = scratch(t);
  turn(place, 'one');
  const two = turn(place, 'two');
  const done = document(place, ['rewind', two, '--reason', 'wrong way']);
  t.deepEqual(done['turns'], [two]);
  t.deepEqual(told(place), ['one', 'two rewound']);
  t.is(readFileSync(join(place.dir, 'two'), 'utf8'), 'two\n');
  t.like(last(events(place), 'conversation.rewound'), {
    reason: 'wrong way',
    toSeq: done['toSeq'],
    turns: [two],
  });
  const shown = durable(place, ['rewind']).stdout;
  t.regex(shown, new RegExp(`rewound +turn ${two}`));
  const undo = durable(place, ['rewind', String(done['undo'])]);
  t.is(undo.code, 0, undo.stderr);
  t.deepEqual(told(place), ['one', 'two']);
  t.is(durable(place, ['verify']).code, 0);
});

test('rewind NUMBER means the task worked on last; one that is not there is 2, nothing to do is 0', (t) => {
  const place = scratch(t);
  turn(place, 'one');
  const head = Number(events(place).at(-1)?.['seq']);
  t.is(durable(place, ['rewind', String(head + 1)]).code, 2);
  t.is(durable(place, ['rewind', 'no-such']).code, 2);
  const same = durable(place, ['rewind', String(head)]);
  t.deepEqual([same.code, same.stdout], [0, 'nothing to do: the conversation stands there already\n']);
  t.is(events(place).length, head);
  t.is(document(place, ['rewind', '2'])['toSeq'], 2);
});

test("rewind is a person's: from inside a turn it is refused with 4, and reading the conversation is not", (t) => {
  const place = scratch(t);
  const one = turn(place, 'one');
  const before = events(place).length;
  const script = `"$0" "$1" rewind ${one}; echo $?; "$0" "$1" rewind > /dev/null; echo $?`;
  const ran = durable(place, ['run', '--', 'sh', '-c', script, process.execPath, PROGRAM]);
  t.is(ran.stdout, '4\n0\n', ran.stderr);
  t.false(
    events(place)
      .slice(before)
      .some(({ type }) => type === 'conversation.rewound'),
  );
});
