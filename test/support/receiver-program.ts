import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';

// A webhook consumer in a process of its own. Prints its address, then one JSON line for every webhook that arrived whole,
// before it is answered, and one for every answer that was sent.
// RECEIVER_SECRET: the whsec_ secret. RECEIVER_MODE: `answer` (204, the default), `hang` (never) or `fail` (500).
// RECEIVER_DELAY_MS: the delay of each answer.

const webhook = new Webhook(process.env.RECEIVER_SECRET ?? '');
const mode = process.env.RECEIVER_MODE ?? 'answer';
const delayMs = Number(process.env.RECEIVER_DELAY_MS ?? 0);

function emit(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function verifies(body: string, headers: NodeJS.Dict<string | string[]>): boolean {
  try {
    webhook.verify(body, {
      'webhook-id': String(headers['webhook-id']),
      'webhook-timestamp': String(headers['webhook-timestamp']),
      'webhook-signature': String(headers['webhook-signature']),
    });
    return true;
  } catch {
    return false;
  }
}

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks).toString('utf8');
  const id = String(request.headers['webhook-id']);
  const verified = verifies(body, request.headers);
  emit({ kind: 'received', id, atMs: Date.now(), verified, event: JSON.parse(body) });
  if (mode === 'hang') return;
  if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
  const status = mode === 'fail' ? 500 : verified ? 204 : 401;
  response.writeHead(status).end(() => emit({ kind: 'answered', id, atMs: Date.now() }));
});

server.listen(0, '127.0.0.1', () => {
  emit({ kind: 'listening', url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks` });
});
