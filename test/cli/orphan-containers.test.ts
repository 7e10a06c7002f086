import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import test from 'ava';
import { document, events, last, type Line } from '../helpers/events.js';
import {
  BACKGROUND,
  endAfter,
  isOver,
  killed,
  leave,
  outcomes,
  readOr,
  type Orphan,
} from '../helpers/leftovers.js';
import { processesNaming } from '../helpers/processes.js';
import { durable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';
import { StubDocker } from '../helpers/stub-docker.js';

/** The marker of a turn that is over. */
function markerOf(place: Scratch): string {
  const ran = durable(place, ['run', '--', 'sh', '-c', 'printf %s "$DURABLE_MARKER"']);
  if (ran.code !== 0) throw new Error(ran.stderr);
  return ran.stdout;
}

for (const client of ['docker', 'podman'] as const) {
  test(`a container with the marker as a variable or a label is listed and ended through ${client}, and no other`, (t) => {
    const place = scratch(t);
    const docker = new StubDocker(join(place.top, 'bin'), client);
    const env = { PATH: docker.path };
    const marker = markerOf(place);
    const { turn } = last(events(place), 'turn.finished') as unknown as { turn: string };
    const byVariable = docker.start({ name: 'db', env: ['PATH=/bin', `DURABLE_MARKER=${marker}`] });
    const byLabel = docker.start({ name: 'cache', labels: { 'durable.marker': marker, other: 'x' } });
    const foreign = [
      docker.start({ name: 'mine' }),
      docker.start({ name: 'of-another', env: ['DURABLE_MARKER=of another repository'] }),
      docker.start({ name: 'named-alike', env: [`NOT_DURABLE_MARKER=${marker}`] }),
    ].sort();
    for (let turns = 0; turns < 3; turns += 1) markerOf(place);
    const found = document<Orphan[]>(place, ['orphans'], { env });
    t.deepEqual(
      found.map(({ kind, id, turn: of, command, startedAt }) => [kind, id, of, command, startedAt]).sort(),
      [
        ['container', byLabel, turn, 'container cache (postgres:16)', '2026-01-02T03:04:05.123Z'],
        ['container', byVariable, turn, 'container db (postgres:16)', '2026-01-02T03:04:05.123Z'],
      ].sort(),
    );
    t.is(document(place, ['status'], { env })['orphans'], 0);
    const stopped = document<Orphan[]>(place, ['orphans', '--stop'], { env });
    t.deepEqual(stopped.map(({ id }) => id).sort(), [byLabel, byVariable].sort());
    t.deepEqual(docker.running, foreign);
    t.deepEqual(
      outcomes(place).map((one) => (one as unknown[])[1]),
      ['left-running', 'left-running', 'stopped', 'stopped'],
    );
    t.false(docker.calls.some((call) => call.includes(marker)));
  });
}

test('a container of an interrupted turn is in the report of recover; the client gets no marker, and status does not ask it', async (t) => {
  const place = scratch(t);
  const docker = new StubDocker(join(place.top, 'bin'));
  await killed(t, place, 'printf %s "$DURABLE_MARKER" > ../marker; echo 0');
  const marker = readOr(join(place.top, 'marker'));
  docker.start({ name: 'db', env: [`DURABLE_MARKER=${marker}`] });
  const env = { PATH: docker.path, DURABLE_MARKER: 'a caller inside another turn' };
  t.is(durable(place, ['status'], { env }).code, 0);
  t.deepEqual(docker.calls, []);
  const { interrupted } = document<{ interrupted: { orphans: Line[] }[] }>(place, ['recover'], {
    env,
    codes: [3],
  });
  t.true(interrupted[0]?.orphans.some((one) => one['command'] === 'container db (postgres:16)'));
  t.regex(docker.calls.join('\n'), /^ps --quiet --no-trunc\ninspect [0-9a-f]{64}$/);
  t.notRegex(docker.environments, /DURABLE_/);
});

test('a container that TERM does not end is killed', (t) => {
  const place = scratch(t);
  const docker = new StubDocker(join(place.top, 'bin'));
  const id = docker.start({ name: 'db', env: [`DURABLE_MARKER=${markerOf(place)}`] });
  docker.beStubborn();
  const stopped = document<Orphan[]>(place, ['orphans', '--stop'], { env: { PATH: docker.path } });
  t.deepEqual(
    stopped.map((one) => one.id),
    [id],
  );
  t.deepEqual(docker.running, []);
});

test('hundreds of containers are asked about and ended together, and what the client shows unasked or unreadable is left alone', (t) => {
  const place = scratch(t);
  const docker = new StubDocker(join(place.top, 'bin'));
  const env = [`DURABLE_MARKER=${markerOf(place)}`];
  const ours = Array.from({ length: 200 }, (_, at) => docker.start({ name: `ours-${String(at)}`, env }));
  const others = Array.from({ length: 200 }, (_, at) => docker.start({ name: `other-${String(at)}` }));
  // Answers hold what nobody asked for: with our marker, and an id that `stop` would take for an option.
  const odd = docker.start({ name: 'odd' });
  const state = { Pid: 1, StartedAt: '', Running: true };
  const option = JSON.stringify({ Id: '--all', Name: '/x', State: state, Config: { Image: '', Env: env } });
  writeFileSync(join(place.top, 'bin', 'state', `${odd}.json`), `{"Id":7},${option}\n`);
  const path = { env: { PATH: docker.path } };
  t.deepEqual(
    document<Orphan[]>(place, ['orphans'], path)
      .map(({ id }) => id)
      .sort(),
    [...ours].sort(),
  );
  t.is(document<Orphan[]>(place, ['orphans', '--stop'], path).length, ours.length);
  t.deepEqual(docker.running, [...others, odd].sort());
  const stops = docker.calls.filter((call) => call.startsWith('stop'));
  t.is(stops.length, 1);
  t.false(stops[0]?.includes('--all'));
});

/** Programs named docker that are no help. */
const USELESS: readonly (readonly [string, string, RegExp])[] = [
  ['hangs', 'sleep 1000 & sleep 1001', /docker did not answer within 2 s; its containers are not looked at/],
  ['fails', 'echo no daemon >&2; exit 1', /docker gave no list of containers/],
  ['prints something else', 'echo 0123456789ab', /docker gave no list of containers/],
];

for (const [what, script, said] of USELESS) {
  test(`a client that ${what} keeps nothing from being found, and leaves nothing running`, (t) => {
    const place = scratch(t);
    const bin = join(place.top, 'bin');
    mkdirSync(bin);
    writeFileSync(join(bin, 'docker'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const env = { PATH: [bin, place.env['PATH'] ?? ''].join(delimiter) };
    const [pid = 0] = leave(t, place, BACKGROUND);
    const ran = durable(place, ['orphans'], { env });
    t.deepEqual([ran.code, ran.stderr], [0, '']);
    t.regex(ran.stdout, said);
    t.regex(ran.stdout, new RegExp(`^${String(pid)} `));
    t.deepEqual(
      document<Orphan[]>(place, ['orphans', '--stop'], { env }).map((one) => one.pid),
      [pid],
    );
    t.deepEqual(processesNaming(join(bin, 'docker')), []);
  });
}

test('a client that has answered and left a process of its own behind is understood, and that process stays', (t) => {
  const place = scratch(t);
  const docker = new StubDocker(join(place.top, 'bin'));
  const id = docker.start({ name: 'db', env: [`DURABLE_MARKER=${markerOf(place)}`] });
  const bin = join(place.top, 'front');
  mkdirSync(bin);
  const client = `#!/bin/sh\nsleep 1000 & echo $! >> "\${0%/*}/left"\nexec "\${0%/*}/../bin/docker" "$@"\n`;
  writeFileSync(join(bin, 'docker'), client, { mode: 0o755 });
  const env = { PATH: [bin, place.env['PATH'] ?? ''].join(delimiter) };
  const ran = durable(place, ['orphans'], { env });
  const left = readOr(join(bin, 'left'))
    .split('\n')
    .map((pid) => endAfter(t, Number(pid)));
  t.regex(ran.stdout, new RegExp(`^${id.slice(0, 12)} `));
  t.deepEqual(
    left.map(isOver),
    left.map(() => false),
  );
});
