import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';

const secret = process.env.WEBHOOK_SECRET ?? '';

const server = createServer(async (request, response) => {
  try {
    const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)]);
    const event = new Webhook(secret).verify(await buffer(request), Object.fromEntries(headers));
    // The same event can come twice: do nothing for an id that you have handled.
    console.log(event);
    response.writeHead(204).end();
  } catch {
    response.writeHead(401).end();
  }
});
server.listen(Number(process.env.PORT ?? 8000), '127.0.0.1', () =>
  console.log('listening', server.address()),
);
