/**
 * Three model protocols, as much of them as the agents use: what a request says, and an answer as server-sent events.
 *
 *     POST /v1/messages           Anthropic Messages        Claude Code
 *     POST /v1/responses          OpenAI Responses          Codex
 *     POST /v1/chat/completions   OpenAI chat completions   OpenCode, Kilo
 */
import { posix } from 'node:path';
import { isRecord } from './json.js';
import type { Heard, ModelStep } from './script.js';

export interface ServerEvent {
  /** Null for a line of data without a name. */
  readonly event: string | null;
  readonly data: unknown;
}

export interface Wire {
  readonly path: string;
  readonly heard: (body: Record<string, unknown>) => Heard[];
  /** `id`: unique in this server. */
  readonly answer: (step: ModelStep, id: string) => ServerEvent[];
}

type Said = { readonly text: string } | { readonly tool: string; readonly input: unknown };

const list = (value: unknown): Record<string, unknown>[] =>
  Array.isArray(value) ? value.filter(isRecord) : [];

/** All text in a value, whatever it is wrapped in. */
function textIn(value: unknown): string {
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.map(textIn).join('\n');
  return isRecord(value) ? textIn(value['text'] ?? value['content'] ?? value['output'] ?? '') : '';
}

const FROM: Readonly<Record<string, Heard['from']>> = { user: 'person', assistant: 'model', tool: 'tool' };
const speaker = (role: unknown): Heard['from'] => FROM[String(role)] ?? 'system';

const anthropic: Wire = {
  path: '/v1/messages',
  heard: (body) => [
    { from: 'system', text: textIn(body['system']) },
    ...list(body['messages']).flatMap(({ role, content }) =>
      typeof content === 'string'
        ? [{ from: speaker(role), text: content }]
        : list(content).map((block): Heard => {
            const isResult = block['type'] === 'tool_result';
            const said = block['type'] === 'tool_use' ? JSON.stringify(block['input']) : textIn(block);
            return { from: isResult ? 'tool' : speaker(role), text: said };
          }),
    ),
  ],
  answer: (step, id) => {
    const said = spoken(step, {
      write: (path, content) => ({ tool: 'Write', input: { file_path: path, content } }),
      edit: (path, from, to) => ({
        tool: 'Edit',
        input: { file_path: path, old_string: from, new_string: to },
      }),
      shell: (command) => ({ tool: 'Bash', input: { command, description: 'as the script says' } }),
      read: (path) => ({ tool: 'Read', input: { file_path: path } }),
    });
    const [block, delta, reason] =
      'text' in said
        ? [{ type: 'text', text: '' }, { type: 'text_delta', text: said.text }, 'end_turn']
        : [
            { type: 'tool_use', id: `toolu_${id}`, name: said.tool, input: {} },
            { type: 'input_json_delta', partial_json: JSON.stringify(said.input) },
            'tool_use',
          ];
    const usage = {
      input_tokens: 10,
      output_tokens: 5,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
    };
    const message = { id: `msg_${id}`, type: 'message', role: 'assistant', model: 'scripted', content: [] };
    const end = { stop_reason: null, stop_sequence: null };
    return [
      { type: 'message_start', message: { ...message, ...end, usage } },
      { type: 'content_block_start', index: 0, content_block: block },
      { type: 'content_block_delta', index: 0, delta },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { ...end, stop_reason: reason }, usage: { output_tokens: 5 } },
      { type: 'message_stop' },
    ].map((data) => ({ event: data.type, data }));
  },
};

const responses: Wire = {
  path: '/v1/responses',
  heard: (body) => [
    { from: 'system', text: textIn(body['instructions']) },
    ...list(body['input']).map((item): Heard => {
      const type = String(item['type']);
      if (type.endsWith('_call')) return { from: 'model', text: textIn(item['arguments'] ?? item['input']) };
      return { from: type.endsWith('_call_output') ? 'tool' : speaker(item['role']), text: textIn(item) };
    }),
  ],
  answer: (step, id) => {
    const item = responseItem(
      spoken(step, {
        write: (path, content) => ({ tool: 'apply_patch', input: patchOf(path, content) }),
        edit: (path, from, to) => ({ tool: 'apply_patch', input: updateOf(path, from, to) }),
        shell: (cmd, isOutside) => ({
          tool: 'exec_command',
          input: { cmd, yield_time_ms: 30_000, ...(isOutside ? OUTSIDE : {}) },
        }),
        // Codex reads files by its shell; of its tools that change nothing this one needs no file.
        read: (path) => ({
          tool: 'update_plan',
          input: { plan: [{ step: `read ${path}`, status: 'pending' }] },
        }),
      }),
      id,
    );
    const response = { id: `resp_${id}`, object: 'response' };
    const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };
    return [
      { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
      { type: 'response.output_item.added', output_index: 0, item },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { ...response, status: 'completed', output: [item], usage } },
    ].map((data) => ({ event: data.type, data }));
  },
};

const OUTSIDE = { sandbox_permissions: 'require_escalated', justification: 'as the script says' };

function responseItem(said: Said, id: string): object {
  if ('text' in said) {
    const content = [{ type: 'output_text', text: said.text, annotations: [] }];
    return { type: 'message', id: `msg_${id}`, role: 'assistant', status: 'completed', content };
  }
  const call = { call_id: `call_${id}`, name: said.tool, status: 'completed' };
  return typeof said.input === 'string'
    ? { type: 'custom_tool_call', id: `ctc_${id}`, ...call, input: said.input }
    : { type: 'function_call', id: `fc_${id}`, ...call, arguments: JSON.stringify(said.input) };
}

const patchOf = (path: string, content: string): string => {
  const lines = content.replace(/\n$/, '').split('\n');
  return [
    '*** Begin Patch',
    `*** Add File: ${path}`,
    ...lines.map((line) => `+${line}`),
    '*** End Patch',
  ].join('\n');
};

const updateOf = (path: string, from: string, to: string): string =>
  ['*** Begin Patch', `*** Update File: ${path}`, '@@', `-${from}`, `+${to}`, '*** End Patch'].join('\n');

const chat: Wire = {
  path: '/v1/chat/completions',
  heard: (body) =>
    list(body['messages']).flatMap((message): Heard[] => [
      { from: speaker(message['role']), text: textIn(message) },
      ...list(message['tool_calls']).map(({ function: call }): Heard => {
        const text = isRecord(call) ? String(call['arguments']) : '';
        return { from: 'model', text };
      }),
    ]),
  answer: (step, id) => {
    const said = spoken(step, {
      write: (path, content) => ({ tool: 'write', input: { filePath: path, content } }),
      edit: (path, from, to) => ({
        tool: 'edit',
        input: { filePath: path, oldString: from, newString: to },
      }),
      shell: (command) => ({ tool: 'bash', input: { command, description: 'as the script says' } }),
      read: (path) => ({ tool: 'read', input: { filePath: path } }),
    });
    const call = 'text' in said ? null : { name: said.tool, arguments: JSON.stringify(said.input) };
    const delta =
      call === null
        ? { role: 'assistant', content: 'text' in said ? said.text : '' }
        : {
            role: 'assistant',
            tool_calls: [{ index: 0, id: `call_${id}`, type: 'function', function: call }],
          };
    const chunk = { id: `chatcmpl-${id}`, object: 'chat.completion.chunk', created: 0, model: 'scripted' };
    const reason = call === null ? 'stop' : 'tool_calls';
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
    return [
      { ...chunk, choices: [{ index: 0, delta, finish_reason: null }] },
      { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: reason }] },
      { ...chunk, choices: [], usage },
    ].map((data) => ({ event: null, data }));
  },
};

export const WIRES: readonly Wire[] = [anthropic, responses, chat];

interface Tools {
  readonly write: (path: string, content: string) => Said;
  readonly edit: (path: string, from: string, to: string) => Said;
  readonly shell: (command: string, isOutside: boolean) => Said;
  readonly read: (path: string) => Said;
}

/** Paths of a script that are relative are below the folder of the environment's WORK. */
function spoken(step: ModelStep, tools: Tools): Said {
  const whole = (path: string): string => posix.resolve(process.env['WORK'] ?? '/', path);
  if ('write' in step) return tools.write(whole(step.write), step.content);
  if ('edit' in step) return tools.edit(whole(step.edit), step.from, step.to);
  if ('shell' in step) return tools.shell(step.shell, step.isOutside === true);
  if ('read' in step) return tools.read(whole(step.read));
  return { text: 'say' in step ? step.say : '' };
}
