import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { stringify } from 'yaml';
import { z } from 'zod';
import { eventually } from './eventually.ts';
import { freePort } from './port.ts';

const NOTICE = z.object({
  status: z.enum(['firing', 'resolved']),
  alerts: z.array(
    z.object({
      status: z.enum(['firing', 'resolved']),
      labels: z.record(z.string(), z.string()),
      annotations: z.record(z.string(), z.string()),
    }),
  ),
});

/** One POST of an Alertmanager to a receiver. */
export type Notice = z.infer<typeof NOTICE>;

/** A real Alertmanager that posts some alerts, by name, to a real HTTP server, and drops all others. */
export class Alertmanager {
  /** Host and port, in the format of Prometheus. */
  address = '';
  readonly notices: Notice[] = [];
  #folder = '';
  #child: ChildProcess | null = null;
  #server: Server | null = null;

  readonly #alertname: string;

  constructor(alertname: string) {
    this.#alertname = alertname;
  }

  async start(): Promise<void> {
    const receiver = createServer(async (request, response) => {
      this.notices.push(NOTICE.parse(JSON.parse((await buffer(request)).toString())));
      response.writeHead(200).end();
    });
    this.#server = receiver;
    receiver.listen(0, '127.0.0.1');
    await once(receiver, 'listening');
    this.#folder = await mkdtemp(join(tmpdir(), 'intentwatch-alertmanager-'));
    const config = join(this.#folder, 'alertmanager.yml');
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    const times = { group_wait: '1s', group_interval: '1s', repeat_interval: '1h' };
    await writeFile(
      config,
      stringify({
        route: {
          receiver: 'nobody',
          group_by: ['...'],
          ...times,
          routes: [{ receiver: 'somebody', matchers: [`alertname="${this.#alertname}"`] }],
        },
        receivers: [
          { name: 'nobody' },
          { name: 'somebody', webhook_configs: [{ url, send_resolved: true }] },
        ],
      }),
    );
    this.address = `127.0.0.1:${await freePort()}`;
    this.#child = spawn(
      'prometheus-alertmanager',
      [
        `--config.file=${config}`,
        `--storage.path=${join(this.#folder, 'data')}`,
        `--web.listen-address=${this.address}`,
        '--cluster.listen-address=',
      ],
      { stdio: 'ignore' },
    );
    await eventually('the Alertmanager to be ready', async () =>
      fetch(`http://${this.address}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
  }

  async close(): Promise<void> {
    if (this.#child !== null && this.#child.exitCode === null) {
      this.#child.kill('SIGTERM');
      await once(this.#child, 'exit');
    }
    this.#server?.close();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
