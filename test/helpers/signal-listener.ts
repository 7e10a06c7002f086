/** Says `ready`, then the name of each signal it gets, one a line; SIGTERM ends it with code 42. */
const SIGNALS: readonly NodeJS.Signals[] = [
  'SIGINT',
  'SIGTERM',
  'SIGHUP',
  'SIGQUIT',
  'SIGUSR1',
  'SIGUSR2',
  'SIGWINCH',
  'SIGCONT',
];

for (const signal of SIGNALS) {
  process.on(signal, () => {
    process.stdout.write(`${signal}\n`);
    if (signal === 'SIGTERM') process.exit(42);
  });
}
setInterval(() => undefined, 60_000);
process.stdout.write('ready\n');
