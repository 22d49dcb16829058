import { test } from 'vitest';
import {
  type Client,
  client,
  expectProbesBeside,
  SCRAPE,
  SIGN_IN,
  serveShipped,
} from '../support/attacked-daemon.ts';
import { opening } from '../support/opening.ts';

const { later } = opening();

test.each<[string, (url: string) => Client]>([
  [
    'send a body in endless chunks',
    (url) => client(url, `${SIGN_IN}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n`),
  ],
  // The metrics are the largest answer that needs no token.
  ['read none of 200 answers', (url) => client(url, SCRAPE.repeat(200), { deaf: true })],
])('a probe is answered beside 64 streams and 300 connections that %s', async (_, make) => {
  await expectProbesBeside(await serveShipped(later), make);
});
