import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';

const TOLERANCE_SECONDS = 300;

/** The event in a webhook. Throws when it is not signed with the secret. `body` is the bytes as they came. */
function verify(secret: string, headers: IncomingHttpHeaders, body: Buffer) {
  const id = String(headers['webhook-id']);
  const timestamp = String(headers['webhook-timestamp']);
  const age = Math.abs(Date.now() / 1_000 - Number(timestamp));
  if (!(age <= TOLERANCE_SECONDS)) throw new Error('the timestamp is not of the last five minutes');

  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  if (key.length < 24) throw new Error('the secret is too short');
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();
  // Several signatures while a secret is being changed: one that fits is enough.
  const signatures = String(headers['webhook-signature']).split(' ');
  const fits = signatures.some((signature) => {
    const [version, base64 = ''] = signature.split(',');
    const given = Buffer.from(base64, 'base64');
    return version === 'v1' && given.length === expected.length && timingSafeEqual(given, expected);
  });
  if (!fits) throw new Error('no signature fits');
  return JSON.parse(body.toString('utf8'));
}

const server = createServer(async (request, response) => {
  try {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const event = verify(process.env.WEBHOOK_SECRET ?? '', request.headers, Buffer.concat(chunks));
    // The same event can come twice: do nothing for an id that you have handled.
    console.log(event.id, event.type, event.data.subject.id);
    response.writeHead(204).end();
  } catch (error) {
    console.error(`refused: ${error}`);
    response.writeHead(401).end();
  }
});
server.listen(Number(process.env.PORT ?? 8000), '127.0.0.1', () =>
  console.log('listening', server.address()),
);
