import { test } from 'vitest';
import { expectUnfinishedBodiesEnd, MIB } from '../support/unfinished-bodies.ts';

test.each([
  [
    'chunks',
    `POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${(MIB).toString(16)}\r\n`,
  ],
  ['a GET', `GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: ${MIB}\r\n\r\n`],
])('strangers cannot fill the memory by 600 unfinished bodies of 1 MiB (%s), nor hold their connections', async (_, head) => {
  await expectUnfinishedBodiesEnd(head);
});
