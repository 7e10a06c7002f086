/** `rewind`: the conversation goes on from an earlier event; without a target, the conversation as it stands. */
import type {
  Conversation,
  ConversationItem,
  ConversationTurn,
  Rewound,
} from '../../lib/decisions/rewind.js';
import type { Repository } from '../../lib/repository.js';
import { findTask } from '../address.js';
import { usage } from '../arguments.js';
import { EXIT } from '../exit.js';
import { noteDamage, withRepository } from '../open.js';
import type { Cell, Output } from '../output.js';
import { refuseInside } from '../person.js';
import type { VerbContext } from '../verb.js';

export async function run(context: VerbContext): Promise<number> {
  const target = context.arguments.text('target');
  if (target === '')
    throw usage("TARGET must not be empty; type 'git durable rewind' to see the conversation");
  return withRepository(context, (repository) =>
    target === null ? show(context, repository) : rewind(context, repository, target),
  );
}

async function rewind(context: VerbContext, repository: Repository, target: string): Promise<number> {
  const { output } = context;
  if (context.arguments.text('task') !== null)
    throw usage('a target names its task itself: git durable rewind TASK/NUMBER');
  await refuseInside(repository, 'rewind');
  const reason = context.arguments.text('reason');
  const done = await repository.rewind({ target, ...(reason === null ? {} : { reason }) });
  const { task, toSeq, turns, invalidated, undo } = done;
  output.result({ task, toSeq, turns, invalidated, undo }, () => {
    describe(output, done);
  });
  return EXIT.done;
}

function describe(output: Output, { task, toSeq, turns, invalidated, undo }: Rewound): void {
  if (undo === null) {
    output.line('nothing to do: the conversation stands there already');
    return;
  }
  output.table([
    ...turns.map((turn) => ['rewound', `turn ${turn}`]),
    ...invalidated.map((approval) => ['invalidated', `approval ${approval}`]),
  ]);
  output.line(`the conversation of ${task} goes on from after event ${String(toSeq)}; files stay`);
  output.line(`undo: git durable rewind ${undo}`);
}

async function show(context: VerbContext, repository: Repository): Promise<number> {
  const { output } = context;
  const prefix = context.arguments.text('task');
  await noteDamage(context, repository.storage);
  const told = await output.progress('reading', () =>
    repository.conversation(...(prefix === null ? [] : [findTask(repository.storage, prefix)])),
  );
  output.result(told, () => {
    tell(output, told);
  });
  return EXIT.done;
}

function tell(output: Output, { task, tip, turns }: Conversation): void {
  output.table(turns.flatMap((turn) => [turnRow(turn), ...turn.items.map(itemRow)]));
  output.line(`task ${task} stands at event ${String(tip)}; next: git durable rewind TURN|NUMBER`);
}

const mark = (rewound: boolean): Cell => (rewound ? { text: 'rewound', style: 'dim' } : { text: '' });

const turnRow = (turn: ConversationTurn): (Cell | string)[] => [
  String(turn.seq),
  mark(turn.rewound),
  { text: `turn ${turn.turn}`, style: 'bold' },
  `${turn.state}: ${turn.objective}`,
];

const itemRow = (item: ConversationItem): (Cell | string)[] => [
  String(item.seq),
  mark(item.rewound),
  item.kind === 'typed' ? 'typed' : `${item.state} ${item.tool ?? ''}`,
  item.text,
];
