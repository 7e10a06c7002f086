/**
 * The scripted model as a program: `node model-entry.js SCRIPT LOG`, both paths. The script is read again for each request; each request
 * is a line of the log before it is answered. Its first line on standard output is the port, on loopback.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { isRecord } from './json.js';
import { stepOf, type ModelRequest, type ModelScript } from './script.js';
import { WIRES } from './wires.js';

const [, , scriptPath = '', logPath = ''] = process.argv;
let count = 0;

const server = createServer((request, response) => {
  void answer(request, response);
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`${String(typeof address === 'object' ? address?.port : '')}\n`);
});

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body: unknown = JSON.parse((await text(request)) || '{}');
  const wire = WIRES.find(({ path }) => request.url?.split('?')[0] === path);
  if (wire === undefined || !isRecord(body)) {
    response.writeHead(request.method === 'GET' ? 200 : 404, { 'content-type': 'application/json' });
    response.end('{"object":"list","data":[],"models":[]}');
    return;
  }
  const script = JSON.parse(readFileSync(scriptPath, 'utf8')) as ModelScript;
  const heard = wire.heard(body);
  // Without tools the host asks for a title or the like.
  const hasTools = Array.isArray(body['tools']) && body['tools'].length > 0;
  const { key, step } = hasTools ? stepOf(script, heard) : { key: null, step: 0 };
  const logged: ModelRequest = { key, step, heard };
  appendFileSync(logPath, `${JSON.stringify(logged)}\n`);
  const next = (key === null ? undefined : script[key]?.[step]) ?? { say: 'Done.' };
  if ('silent' in next) return;
  count += 1;
  const events = wire.answer(next, `${String(process.pid)}_${String(count)}`);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const { event, data } of events)
    response.write(`${event === null ? '' : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`);
  response.end(events.some(({ event }) => event === null) ? 'data: [DONE]\n\n' : undefined);
}
