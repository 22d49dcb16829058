import { createPublicKey, verify } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';

const TOLERANCE_SECONDS = 300;

/** The prefix of the 32 bytes of a public key in its DER form. */
const DER = Buffer.from('302a300506032b6570032100', 'hex');

/** The event in a webhook. Throws when it is not signed for the public key. `body` is the bytes as they came. */
function verifyWebhook(publicKey: string, headers: IncomingHttpHeaders, body: Buffer) {
  const id = String(headers['webhook-id']);
  const timestamp = String(headers['webhook-timestamp']);
  const age = Math.abs(Date.now() / 1_000 - Number(timestamp));
  if (!(age <= TOLERANCE_SECONDS)) throw new Error('the timestamp is not of the last five minutes');

  const bytes = Buffer.from(publicKey.replace(/^whpk_/, ''), 'base64');
  const key = createPublicKey({ key: Buffer.concat([DER, bytes]), format: 'der', type: 'spki' });
  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
  // Several signatures while a key is being changed: one that fits is enough.
  const signatures = String(headers['webhook-signature']).split(' ');
  const fits = signatures.some((signature) => {
    const [version, base64 = ''] = signature.split(',');
    return version === 'v1a' && verify(null, signed, key, Buffer.from(base64, 'base64'));
  });
  if (!fits) throw new Error('no signature fits');
  return JSON.parse(body.toString('utf8'));
}

const server = createServer(async (request, response) => {
  try {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const publicKey = process.env.WEBHOOK_PUBLIC_KEY ?? '';
    const event = verifyWebhook(publicKey, request.headers, Buffer.concat(chunks));
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
