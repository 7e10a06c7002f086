/**
 * A real terminal for tests: a pseudo-terminal with an interactive shell in it, driven by what it shows.
 *
 * Node has no pseudo-terminal, so python3 makes it (pty.fork); the suite that uses this has a script of its own.
 */
import type { Scratch } from './scratch.js';

export interface Step {
  /** Regular expression over what was shown since the step before. */
  readonly until: string;
  /** Typed then; control characters as they are (\u0003 is Ctrl-C). */
  readonly send: string;
}

const DRIVER = `
import json, os, pty, re, select, sys, time
plan = json.loads(sys.argv[1])
pid, fd = pty.fork()
if pid == 0:
    os.execvpe('sh', ['sh', '-i'], dict(os.environ, PS1='$ ', ENV=''))
shown, start = '', 0
def read(seconds):
    global shown
    ready, _, _ = select.select([fd], [], [], seconds)
    if not ready: return True
    try: data = os.read(fd, 65536)
    except OSError: return False
    shown += data.decode('utf8', 'replace')
    return len(data) > 0
for step in plan:
    end = time.monotonic() + 30
    while True:
        match = re.search(step['until'], shown[start:])
        if match: break
        if time.monotonic() > end or not read(0.2):
            sys.stderr.write('never shown: ' + step['until'] + '\\n' + shown)
            os.kill(pid, 9); sys.exit(1)
    start += match.end()
    os.write(fd, step['send'].encode())
end = time.monotonic() + 30
ended = False
while time.monotonic() < end and not ended: ended = not read(0.2)
if not ended:
    sys.stderr.write('the shell did not end\\n' + shown)
    os.kill(pid, 9); sys.exit(1)
os.waitpid(pid, 0)
sys.stdout.write(shown)
`;

/** What the terminal has shown, without carriage returns. The last step must end the shell. */
export function inTerminal(place: Scratch, steps: readonly Step[], env: Record<string, string> = {}): string {
  const ran = place.run('python3', ['-c', DRIVER, JSON.stringify(steps)], { env });
  if (ran.code !== 0) throw new Error(ran.stderr);
  return ran.stdout.replaceAll('\r', '');
}
