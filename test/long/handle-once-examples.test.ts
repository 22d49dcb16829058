import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { VECTORS } from '../support/consumer-vectors.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { ordersOf } from '../support/orders.ts';
import { freePort } from '../support/port.ts';
import { Program } from '../support/program.ts';
import { renderedEvent } from '../support/rendered-event.ts';
import { signedRequest } from '../support/signed-request.ts';
import { WEBHOOK_SECRET } from '../support/webhook-receiver.ts';

const { later } = opening();

const examples = resolve(import.meta.dirname, '../../examples/handle-once');
const vectors = resolve(import.meta.dirname, '../../consumer/vectors.json');
const folder = mkdtempSync(join(tmpdir(), 'intentwatch-handle-once-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const EVENTS = 60;

/** 7! of the longest life, and those of the others. */
const ORDERS = VECTORS.lives.reduce((sum, { events }) => sum + [...ordersOf(events)].length, 0);
const binary = join(folder, 'handle-once');
const EFFECT_LINE = z.object({ event_id: z.string() });

/** A program that handles each event once: its command, and the reader of its effects. */
type Example = {
  name: string;
  needed: ReturnType<typeof needs>;
  build: string[] | null;
  /** Null where the package itself is tested with the vectors. */
  checkVectors: string[] | null;
  serve: string[];
  effects: (file: string) => string[];
};

function effectsInSqlite(file: string): string[] {
  const database = new DatabaseSync(file);
  const rows = database.prepare('SELECT event_id FROM effects').all();
  database.close();
  return rows.map(({ event_id }) => String(event_id));
}

const EXAMPLES: readonly Example[] = [
  {
    name: 'TypeScript',
    needed: needs(),
    build: null,
    checkVectors: null,
    serve: [process.execPath, join(examples, 'typescript/server.ts')],
    effects: effectsInSqlite,
  },
  {
    name: 'Python',
    needed: needs(PARTS.python),
    build: null,
    checkVectors: ['python3', join(examples, 'python/check_vectors.py')],
    serve: ['python3', join(examples, 'python/server.py')],
    effects: effectsInSqlite,
  },
  {
    name: 'Go',
    needed: needs(PARTS.go),
    build: ['go', 'build', '-o', binary, '.'],
    checkVectors: [binary, 'check-vectors'],
    serve: [binary, 'serve'],
    effects: (file) =>
      readFileSync(file, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => EFFECT_LINE.parse(JSON.parse(line)).event_id),
  },
];

function run([command = '', ...args]: readonly string[]) {
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' };
  return spawnSync(command, args, { cwd: join(examples, 'go'), encoding: 'utf8', env });
}

/** Events of four subjects, in order. */
function someEvents(): RenderedEvent[] {
  return Array.from({ length: EVENTS }, (_, index) => {
    const event = renderedEvent(`evt_${String(index).padStart(40, '0')}`);
    const subject = { kind: 'intent', id: `intent:${index % 4}` };
    return { ...event, data: { ...event.data, subject, sequence: Math.floor(index / 4) + 1 } };
  });
}

for (const { name, needed, build, checkVectors, serve, effects } of EXAMPLES)
  describe.skipIf(needed.skip)(`the program in ${name}${needed.note}`, () => {
    beforeAll(() => {
      if (build === null) return;
      const built = run(build);
      if (built.status !== 0) throw new Error(`${build.join(' ')}: ${built.stderr}`);
    });

    if (checkVectors !== null) {
      test('agrees with every vector of the package, in every order of events', () => {
        const checked = run([...checkVectors, vectors]);
        const deliveries = VECTORS.handling.flatMap((one) => one.deliveries);
        const { verification, facts, lives } = VECTORS;
        const all = [verification, deliveries, facts, lives].reduce((sum, { length }) => sum + length, 0);
        expect([checked.status, checked.stdout]).toEqual([0, `${ORDERS} orders\n${all} checked, 0 wrong\n`]);
      });

      test('names the vector that it does not agree with', () => {
        const { verification, handling, facts, lives } = structuredClone(VECTORS);
        for (const one of verification)
          one.verdict = one.verdict === 'accepted' ? 'header_missing' : 'accepted';
        for (const { deliveries } of handling)
          for (const one of deliveries) one.verdict = one.verdict === 'handled' ? 'new' : 'handled';
        for (const one of facts) one.fact = `${one.fact}s`;
        for (const one of lives) {
          one.tables.subjects?.push(['intent:s', 'wrong', null]);
          one.events.splice(1);
        }
        const file = join(folder, 'wrong.json');
        writeFileSync(file, JSON.stringify({ verification, handling, facts, lives }));
        const checked = run([...checkVectors, file]);
        expect(checked.status).toBe(1);
        const [, all, wrong] = /(\d+) checked, (\d+) wrong/.exec(checked.stdout) ?? [];
        expect(wrong).toBe(all);
      });
    }

    test('handles each event once, killed while two of each come at the same time', async () => {
      const file = join(folder, `${name}.events`);
      const port = await freePort();
      const env = { WEBHOOK_SECRET, PORT: String(port), PYTHONDONTWRITEBYTECODE: '1' };
      const start = async (): Promise<Program> => {
        const program = await Program.run([...serve, file], env);
        later(() => program.end('SIGKILL'));
        await program.line(/^listening/);
        return program;
      };
      let program = await start();
      const post = async (event: RenderedEvent): Promise<number> => {
        const { headers, body } = signedRequest(event);
        const sent = new Headers(Object.entries(headers).map(([key, value]) => [key, String(value)]));
        const answer = await fetch(`http://127.0.0.1:${port}/`, {
          method: 'POST',
          headers: sent,
          body: new Uint8Array(body),
        }).catch(() => null);
        await answer?.arrayBuffer().catch(() => undefined);
        return answer?.status ?? 0;
      };

      let answered = 0;
      const events = someEvents();
      const untilClaimed = async (event: RenderedEvent): Promise<void> => {
        for (;;) {
          const died = program.ending();
          if ((await post(event)) === 204) break;
          // The program is down: no answer can come until its next start.
          await Promise.race([died, new Promise((done) => setTimeout(done, 20))]);
        }
        answered += 1;
      };
      const sending = [0, 1, 2, 3].map(async (subject) => {
        for (const event of events.filter(({ data }) => data.subject.id === `intent:${subject}`))
          await Promise.all([untilClaimed(event), untilClaimed(event)]);
      });
      for (const handled of [10, 30, 50]) {
        await program.line(new RegExp(`^new evt_0*${handled}$`));
        await program.end('SIGKILL');
        program = await start();
      }
      await Promise.all(sending);
      expect(answered).toBe(2 * EVENTS);
      const ids = events.map(({ id }) => id);
      expect(effects(file).sort()).toEqual(ids);

      for (const event of events) expect(await post(event)).toBe(204);
      expect(effects(file).sort()).toEqual(ids);
      await program.line(new RegExp(`^handled ${ids.at(-1)}$`));
      const tampered = { ...events[0], type: 'intent.settled' };
      const { headers } = signedRequest(renderedEvent(ids[0]));
      const forged = await fetch(`http://127.0.0.1:${port}/`, {
        method: 'POST',
        headers: Object.entries(headers).map(([key, value]): [string, string] => [key, String(value)]),
        body: JSON.stringify(tampered),
      });
      expect(forged.status).toBe(401);
    });
  });
