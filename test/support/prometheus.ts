import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { vi } from 'vitest';
import { stringify } from 'yaml';
import { z } from 'zod';
import { freePort } from './port.ts';

/** The shipped rules. */
export const RULES_FILE = new URL('../../config/prometheus/rules.yml', import.meta.url).pathname;

/** A real Prometheus that scrapes a target every second, as the job `intentwatch`, and evaluates rules. */
export class Prometheus {
  url = '';
  #folder = '';
  #child: ChildProcess | null = null;

  /** `rulesFile` has the evaluated rules; firing alerts go to `alertmanager`, a host with its port. */
  async start(
    target: string,
    {
      rulesFile = RULES_FILE,
      alertmanager = null,
    }: { rulesFile?: string; alertmanager?: string | null } = {},
  ): Promise<void> {
    this.#folder = await mkdtemp(join(tmpdir(), 'intentwatch-prometheus-'));
    const config = join(this.#folder, 'prometheus.yml');
    await writeFile(
      config,
      stringify({
        global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
        scrape_configs: [{ job_name: 'intentwatch', static_configs: [{ targets: [target] }] }],
        rule_files: [rulesFile],
        ...(alertmanager === null
          ? {}
          : { alerting: { alertmanagers: [{ static_configs: [{ targets: [alertmanager] }] }] } }),
      }),
    );
    const port = await freePort();
    this.url = `http://127.0.0.1:${port}`;
    const data = join(this.#folder, 'data');
    this.#child = spawn(
      'prometheus',
      [
        `--config.file=${config}`,
        `--storage.tsdb.path=${data}`,
        `--web.listen-address=127.0.0.1:${port}`,
        '--enable-feature=exemplar-storage',
      ],
      { stdio: 'ignore' },
    );
    await this.until('its API to answer', async () => (await fetch(`${this.url}/-/ready`)).ok);
  }

  async until(what: string, condition: () => Promise<boolean>): Promise<void> {
    const holds = async (): Promise<boolean> => condition().catch(() => false);
    await vi.waitUntil(holds, { interval: 100, timeout: 170_000 }).catch((cause: unknown) => {
      throw new Error(`waited for Prometheus: ${what}`, { cause });
    });
  }

  async get(path: string): Promise<unknown> {
    const answer = await fetch(`${this.url}/api/v1/${path}`);
    if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`);
    return answer.json();
  }

  /** The number of series of an expression now. Throws with the message of Prometheus when it does not parse. */
  async count(expr: string): Promise<number> {
    const answer = await this.get(`query?query=${encodeURIComponent(expr)}`);
    return z.object({ data: z.object({ result: z.array(z.unknown()) }) }).parse(answer).data.result.length;
  }

  async close(): Promise<void> {
    if (this.#child !== null && this.#child.exitCode === null) {
      this.#child.kill('SIGTERM');
      await once(this.#child, 'exit');
    }
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
