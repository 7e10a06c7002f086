import test from 'ava';
import { interruptedRun } from '../helpers/interrupted-run.js';
import { durable } from '../helpers/program.js';
import { scratch } from '../helpers/scratch.js';

const READING = [
  ['status'],
  ['status', '--exit-code'],
  ['recover'],
  ['recover', '--all'],
  ['log'],
  ['log', '-n', '1'],
];
const WRITING = [['run', '--', 'true'], ['recover', '--keep'], ['checkpoint'], ['doctor', '--fix']];

for (const [key, value, wanted] of [
  ['durable.fence', 'loose', 'strict, hooks or off'],
  ['durable.ttl', 'soon', 'a number'],
  ['durable.fsync', 'perhaps', 'true or false'],
] as const)
  test(`with ${key} set to what it cannot be, what was interrupted is told all the same with the setting and what to type beside it, and what writes refuses`, async (t) => {
    const place = scratch(t);
    await interruptedRun(t, place, 'echo changed > README');
    const told = READING.map((words) => durable(place, words));
    place.git('config', key, value);
    for (const [at, words] of READING.entries()) {
      const ran = durable(place, words);
      const [code, stdout] = [told[at]?.code, told[at]?.stdout];
      t.deepEqual({ code: ran.code, stdout: ran.stdout }, { code, stdout }, words.join(' '));
      for (const part of [key, `'${value}'`, wanted, `git config ${key} VALUE`])
        t.true(ran.stderr.includes(part), ran.stderr);
    }
    const doctor = durable(place, ['doctor', '--json']);
    t.is(doctor.code, 3);
    const { problems } = JSON.parse(doctor.stdout) as { problems: { code: string; fix: string }[] };
    const [first] = problems;
    t.is(first?.code, 'setting');
    t.is(first?.fix, `git config ${key} VALUE`);
    t.true(problems.some(({ code }) => code === 'turn-interrupted'));
    for (const words of WRITING) {
      const ran = durable(place, words);
      t.is(ran.code, 2, words.join(' '));
      t.true(ran.stderr.includes(`git config ${key} VALUE`), ran.stderr);
    }
  });
