import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { daemonAddress } from '../../src/client/address.ts';
import { redisTimeMs } from '../../src/store/commands.ts';
import { LearnedStore } from '../../src/store/learned.ts';
import { Quarantine } from '../../src/store/undelivered.ts';
import { ADMIN_TOKEN, type ApiStage, apiStage, READ_TOKEN } from '../support/api-stage.ts';
import { type Ran, runCommand } from '../support/command.ts';
import { deliveryStage, hourOfEvents } from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { appendEvents, type MadeEvent, madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { freePort } from '../support/port.ts';
import { Program } from '../support/program.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

const open = opening();

const MAIN = new URL('../../src/main.ts', import.meta.url).pathname;
const NO_RETRIES = { retries: { delays: [] }, concurrency: 1 };
const ESCAPE = '\u001b';

async function run(url: string, args: readonly string[], env: Record<string, string> = {}): Promise<Ran> {
  return runCommand(args, { INTENTWATCH_URL: url, INTENTWATCH_TOKEN: ADMIN_TOKEN, ...env });
}

async function running(
  url: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<Program> {
  const program = await Program.start(MAIN, args, {
    INTENTWATCH_URL: url,
    INTENTWATCH_TOKEN: ADMIN_TOKEN,
    ...env,
  });
  open.later(() => program.end('SIGKILL'));
  return program;
}

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'intentwatch-commands-'));
  open.later(() => rm(made, { recursive: true, force: true, maxRetries: 5 }));
  return made;
}

async function api(answer: () => number = () => 204): Promise<ApiStage> {
  const hooks = { backend: new Hook(), broken: new Hook(answer), operator: new Hook() };
  for (const hook of Object.values(hooks)) await open.started(hook);
  return apiStage(hooks, { later: open.later });
}

/** A daemon without tokens, with one receiver whose events the test makes. */
async function delivering(hook: Hook, more: object = {}) {
  const server = { host: '127.0.0.1', port: 0, token: ADMIN_TOKEN };
  const stage = await deliveryStage(open, { hook: { hook, more } }, { server });
  const { daemon } = await stage.start();
  const all: MadeEvent[] = [];
  const happen = async (count: number): Promise<MadeEvent[]> => {
    const fromMs = Math.max(await redisTimeMs(stage.redis), (all.at(-1)?.atMs ?? 0) + 1);
    const total = all.length + count;
    const made = hourOfEvents(total, { fromMs, transfers: total }).slice(all.length);
    all.push(...made);
    await appendEvents(stage.redis, stage.keys, made);
    return made;
  };
  return { stage, url: daemon.url, happen };
}

/** An id of each kind, and arguments, for every command that calls a daemon. */
const CLIENTS: readonly (readonly string[])[] = [
  ['ls'],
  ['show', `intent:${hashOf(9)}`],
  ['events'],
  ['events', '--follow'],
  ['undelivered'],
  ['track', 'intent', hashOf(9), '--to', 'backend'],
  ['untrack', `intent:${hashOf(9)}`],
  ['recheck', `intent:${hashOf(9)}`],
  ['resend', `intent:${hashOf(9)}`],
  ['retry', 'backend', '--all'],
  ['receivers'],
  ['receivers', 'show', 'nobody'],
  ['receivers', 'pause', 'nobody'],
  ['receivers', 'test', 'nobody'],
  ['receivers', 'remove', 'nobody'],
  ['listen', '--forward-to', 'http://127.0.0.1:9/'],
];

test('verify by several matches names them, and ends as for a wrong argument', async () => {
  const { url } = await api();
  const config = join(await folder(), 'intentwatch.yaml');
  const rpc = [{ name: 'own', url: 'http://127.0.0.1:9' }];
  await writeFile(
    config,
    JSON.stringify({ upstream: { baseUrl: 'http://127.0.0.1:9', apiKey: 'key' }, chains: { 8453: { rpc } } }),
  );
  const found = await run(url, ['verify', hashOf(1).slice(0, 10), '--config', config]);
  expect(found).toMatchObject({ code: 65, out: '' });
  expect(found.err).toContain('found several by');
});

describe('every command that needs a daemon', () => {
  test('ends with 75 where none runs, and with 78 for a wrong token, without showing it', async () => {
    const { url } = await api();
    const away = `http://127.0.0.1:${await freePort()}`;
    const env = { XDG_STATE_HOME: await folder() };
    for (const args of CLIENTS) {
      const none = await run(away, args, env);
      expect(none, args.join(' ')).toMatchObject({ code: 75 });
      expect(none.err).toContain(`intentwatch: no daemon answers at ${away}`);
      const token = 'a-token-of-nobody-at-all';
      // Answers to failed logins of one address get slower.
      if (args.length > 1 && args[0] !== 'show') continue;
      const wrong = await run(url, args, { ...env, INTENTWATCH_TOKEN: token });
      expect(wrong, args.join(' ')).toMatchObject({ code: 78 });
      expect(wrong.err).toContain('INTENTWATCH_TOKEN: found a token that is not the daemon’s');
      expect(wrong.out + wrong.err).not.toContain(token);
    }
  });

  test('explains an address of the config or the default where none runs', async () => {
    const config = join(await folder(), 'intentwatch.yaml');
    await writeFile(config, JSON.stringify({ server: { port: await freePort() } }));
    const { code, err } = await runCommand(['reload', '--config', config]);
    expect(code).toBe(75);
    expect(err).toMatch(/no daemon answers at .* the server of .*intentwatch\.yaml, .* --url/);
    const { url, expected } = await daemonAddress({}, {});
    expect(url).toBe('http://127.0.0.1:9464');
    expect(expected).toMatch(/^found no .*intentwatch\.yaml, so that is the default/);
  });

  test('lists the valid names for an unknown name', async () => {
    const { url } = await api();
    const nobody = CLIENTS.filter(
      (args) => args.includes('nobody') && !['remove', 'rotate'].includes(args[1] ?? ''),
    );
    for (const args of nobody) {
      const ran = await run(url, args);
      expect(ran, args.join(' ')).toMatchObject({ code: 1, out: '' });
      expect(ran.err).toMatch(/^intentwatch: found the receiver "nobody", expected one of /);
    }
    const shown = await run(url, ['show', hashOf(9)]);
    expect(shown).toMatchObject({ code: 1, out: '' });
    expect(shown.err).toContain(`found nothing watched by "${hashOf(9)}"`);
  });

  test('lets a token that reads see, and change nothing', async () => {
    const { url } = await api();
    const env = { INTENTWATCH_TOKEN: READ_TOKEN };
    // As programs of their own: the output and end of a command are those of its process.
    const listing = await running(url, ['ls', '--json'], env);
    expect(await listing.ending()).toMatchObject({ code: 0 });
    expect(JSON.parse(listing.stdout.join('\n'))).toHaveProperty('subjects');
    expect(listing.stderr).toEqual([]);
    const pausing = await running(url, ['receivers', 'pause', 'backend'], env);
    expect(await pausing.ending()).toMatchObject({ code: 78 });
    expect(pausing.stdout).toEqual([]);
    expect(pausing.stderr.join('\n')).toContain('expected an admin token');
  });

  test('finds the daemon by the server of a config, also without its secrets', async () => {
    const { url } = await api();
    const file = join(await folder(), 'intentwatch.yaml');
    const { port } = new URL(url);
    await writeFile(file, `upstream: { apiKey: "\${NOT_SET}" }\nserver: { host: 0.0.0.0, port: ${port} }\n`);
    expect(await run('', ['receivers', '--config', file])).toMatchObject({ code: 0, err: '' });
    await writeFile(file, 'server: { port: 0 }\n');
    const free = await run('', ['receivers', '--config', file]);
    expect(free).toMatchObject({ code: 78, out: '' });
    expect(free.err).toContain('found server.port 0');
    await writeFile(file, 'server: { port: 22464x }\n');
    expect((await run('', ['reload', '--config', file])).err).toContain('found no address in server.port');
    await writeFile(file, 'server:\n\tport: 9464\n');
    const broken = await run('', ['reload', '--config', file]);
    expect(broken).toMatchObject({ code: 78, out: '' });
    expect(broken.err).toContain(`${file}:2:1: found a tab`);
  });

  test('sends a token to another machine only by https, and to no address that holds secrets', async () => {
    const open = await run('http://192.0.2.1:9464', ['ls']);
    expect(open).toMatchObject({ code: 78, out: '' });
    expect(open.err).toContain('the token would travel in clear');
    const withUser = await run('http://user:pass-word@127.0.0.1:9464', ['ls']);
    expect(withUser).toMatchObject({ code: 78, out: '' });
    expect(withUser.err).not.toContain('pass-word');
  });
});

const SUBJECTS = z.object({ subjects: z.array(z.object({ subject: z.string() })), next: z.null() });
const DETAILS = z.object({
  subject: z.string(),
  metadata: z.record(z.string(), z.string()),
  timeline: z.array(z.object({ type: z.string(), event: z.string() })),
  next: z.null(),
  deliveries: z.array(z.object({ event: z.string(), receiver: z.string() })),
});

describe('track, ls, show, recheck and untrack', () => {
  test('watch a transfer from now on, find it by hash and metadata, and end it', async () => {
    const stage = await api(() => 500);
    const { url } = stage;
    const [hash, subject] = [hashOf(7), `intent:${hashOf(7)}`];
    const track = [
      'track',
      'intent',
      hash,
      '--to',
      'backend',
      'broken',
      '--metadata',
      'order=77',
      '--metadata',
      'who=me',
    ];
    expect(await run(url, track)).toEqual({ code: 0, out: `${subject} is tracked`, err: '' });
    expect((await run(url, track)).out).toContain('already');
    stage.setStatus(hash, 'pending');
    expect((await run(url, ['recheck', subject])).code).toBe(0);
    const follow = await running(url, ['events', '--follow', '--since', '1h', '--subject', hash, '--json']);
    const [line] = await follow.line(/^\{.*"intent.pending".*$/);
    expect(JSON.parse(line)).toMatchObject({
      data: { subject: { id: subject }, metadata: { order: '77', who: 'me' } },
    });

    const listed = await run(url, ['ls', '--kind', 'intent', '--metadata', 'order=77', '--json']);
    expect(SUBJECTS.parse(JSON.parse(listed.out)).subjects.map((one) => one.subject)).toEqual([subject]);
    for (const id of [subject, hash, hash.slice(2).toUpperCase().replace(/^/, '0x'), 'order=77']) {
      const shown = await run(url, ['show', id, '--json']);
      expect(shown, id).toMatchObject({ code: 0, err: '' });
      const details = DETAILS.parse(JSON.parse(shown.out));
      expect(details).toMatchObject({ subject, metadata: { order: '77', who: 'me' } });
      expect(details.timeline.map(({ type }) => type)).toEqual(['intent.pending']);
    }
    for (const args of [['events'], ['undelivered', 'broken']]) {
      for (const id of [hash, 'order=77']) {
        await eventually(`${args[0]} finds it by ${id}`, async () =>
          (await run(url, [...args, '--subject', id])).out.includes(subject),
        );
      }
    }
    for (const [option, value, expected] of [
      ['--kind', 'intents', 'expected one of intent, wallet'],
      ['--wallet', '0x12', 'expected an EVM address with 40 hex digits'],
      ['--subscription', 'nope', 'expected one of order-1, order-2'],
    ] as const) {
      const refused = await run(url, ['ls', option, value]);
      expect(refused, option).toMatchObject({ code: 1, out: '' });
      expect(refused.err).toContain(expected);
    }
    const none = await run(url, ['events', '--type', '!*.updated']);
    expect(none).toMatchObject({ code: 1, out: '' });
    expect(none.err).toContain('expected at least one pattern without "!"');
    await eventually('broken has refused it', async () =>
      (await run(url, ['undelivered', 'broken', '--attempts'])).out.includes('500 Internal'),
    );
    const text = (await run(url, ['show', hash])).out;
    expect(text).toMatch(/^ {2}status +pending, under way$/m);
    expect(text).toMatch(/^ {2}metadata +order=77 who=me$/m);
    expect(text).toMatch(/intent\.pending +#1 +pending +evt_[0-9a-f]{40}$/m);
    expect(text).toMatch(/^ +broken +dead, 1 attempt$/m);
    expect(text).toMatch(/500 Internal Server Error.* ms\)$/m);
    expect(text).not.toContain(ESCAPE);

    const resent = await run(url, ['resend', 'order=77', '--to', 'backend']);
    expect(resent).toMatchObject({
      code: 0,
      out: 'backend: 1 event sent once more: 1 delivered, 0 dead letters',
    });

    expect(await run(url, ['untrack', 'order=77'])).toEqual({
      code: 0,
      out: `${subject} is not tracked any more`,
      err: '',
    });
  });

  test('prints the accepted values', async () => {
    const { url } = await api();
    expect((await run(url, ['track', 'intend', hashOf(1), '--to', 'backend'])).err).toContain(
      'expected a kind (wallet',
    );
    const unknown = await run(url, ['track', 'intent', hashOf(1), '--to', 'nobody']);
    expect(unknown).toMatchObject({ code: 1 });
    expect(unknown.err).toContain('found nobody, expected receivers that exist (backend, broken, operator)');
    expect((await run(url, ['ls', '--age', 'long'])).err).toContain(
      'query.age: found "long", expected a span',
    );
  });

  test('names the file that has no quote, and its contents', async () => {
    const { url } = await api();
    const file = join(await folder(), 'quote.json');
    const track = async (): Promise<string> =>
      (await run(url, ['track', '--to', 'backend', '--quote', file])).err;
    expect(await track()).toContain(`${file}: found no such file, expected a quote as POST /v1/quotes`);
    await writeFile(file, '{ "id": ');
    expect(await track()).toContain(`${file}: found text that is not JSON, expected a quote`);
    await writeFile(file, '[]');
    expect(await track()).toContain(`${file}: found JSON that is no object, expected a quote`);
    await writeFile(file, '{ "name": "intentwatch" }');
    expect(await track()).toContain(
      'expected a quote as POST /v1/quotes answered it, with an id of "quote:"',
    );
  });
});

describe('undelivered, retry and resend', () => {
  test('list dead letters, deliver them again, and send delivered events once more', async () => {
    const hook = await open.started(new Hook(() => 500));
    const { stage, url, happen } = await delivering(hook, NO_RETRIES);
    const made = await happen(3);
    await stage.drained('hook');
    const ids = made.map(madeEventId);
    const listed = await run(url, ['undelivered', '--state', 'dead', '--json']);
    const { undelivered } = z
      .object({ undelivered: z.array(z.object({ event: z.string(), receiver: z.literal('hook') })) })
      .parse(JSON.parse(listed.out));
    expect(undelivered.map(({ event }) => event).toSorted()).toEqual(ids.toSorted());
    expect((await run(url, ['undelivered'])).out).toMatch(
      /^hook +dead +evt_\S+ +intent.filled .* 500 Internal Server Error$/m,
    );

    expect((await run(url, ['retry', 'hook', '--status', 'abc'])).err).toContain(
      'expected an HTTP or SMTP code such as 503, or none',
    );
    expect((await run(url, ['retry', 'hook'])).err).toContain('found none of events, --all and filters');
    const unknown = await run(url, ['retry', 'hook', ids[0] ?? '', `evt_${'0'.repeat(40)}`]);
    expect(unknown).toMatchObject({ code: 1 });
    expect(unknown.err).toContain('nothing was done');
    hook.answer = () => 204;
    expect((await run(url, ['retry', 'hook', '--all'])).out).toBe(
      '3 of 3 dead letters of hook are queued again',
    );
    await stage.drained('hook');
    expect((await run(url, ['undelivered'])).out).toBe('nothing is undelivered');

    const [first] = made;
    const resent = await run(url, ['resend', first === undefined ? '' : madeEventId(first)]);
    expect(resent).toMatchObject({
      code: 0,
      out: 'hook: 1 event sent once more: 1 delivered, 0 dead letters',
    });
    expect((await run(url, ['resend', ids[1] ?? '', '--to', 'hook'])).code).toBe(0);
    const times = made.map(({ atMs }) => new Date(atMs).toISOString());
    const range = ['--since', times[0] ?? '', '--until', times[2] ?? ''];
    expect((await run(url, ['resend', '--to', 'hook', ...range])).out).toContain(
      '2 events sent once more: 2 delivered',
    );
    expect(hook.ids.slice(6)).toEqual([ids[0], ids[1], ids[0], ids[1]]);
    const future = ['--since', '2130-01-01T00:00:00Z'];
    expect((await run(url, ['resend', '--to', 'hook', ...future])).err).toContain(
      'found a since in the future',
    );
    expect((await run(url, ['receivers', 'rotate', 'hook'])).err).toContain(
      'those of the config are changed in its file',
    );
    expect((await run(url, ['resend', '--since', '1h'])).err).toContain('found --since without --to');
  });
});

describe('receivers', () => {
  test('shows them, and pauses, resumes, disables, enables and tests one', async () => {
    const hook = await open.started(new Hook());
    const { stage, url, happen } = await delivering(hook);
    expect((await run(url, ['receivers'])).out).toMatch(/^hook +webhook +ok +0 .* never +never$/m);
    expect((await run(url, ['receivers', 'pause', 'hook'])).out).toMatch(/^hook: paused since \S+Z$/);
    await happen(2);
    expect((await run(url, ['receivers', 'resume', 'hook', '--json'])).out).toContain('"name": "hook"');
    await hook.until((came) => came.length === 2);
    await stage.drained('hook');
    expect((await run(url, ['receivers', 'disable', 'hook'])).out).toMatch(
      /^hook: disabled by the operator at \S+Z$/,
    );
    const held = await run(url, ['resend', '--to', 'hook', '--since', '1h']);
    expect(held).toMatchObject({ code: 1 });
    expect(held.err).toContain('hook is disabled; enable it first: intentwatch receivers enable hook');
    expect((await run(url, ['receivers', 'enable', 'hook'])).out).toBe('hook: ok');
    expect((await run(url, ['receivers', 'test', 'hook'])).out).toMatch(/^OUTCOME +delivered$/m);
    hook.answer = () => 418;
    expect(await run(url, ['receivers', 'test', 'hook'])).toMatchObject({ code: 1 });
    expect((await run(url, ['receivers', 'show', 'hook'])).out).toMatch(/^NAME +hook$/m);
  });

  test('makes one from a file, rotates its secret and removes it', async () => {
    const { url } = await api();
    const file = join(await folder(), 'receiver.yaml');
    await writeFile(
      file,
      'name: late\ntype: webhook\nurl: https://example.com/\nsecrets: ["${LATE_SECRET}"]\n',
    );
    const secret = `whsec_${Buffer.alloc(32, 3).toString('base64')}`;
    expect((await run(url, ['receivers', 'add', 'nofile.yaml'])).err).toContain(
      'found no such file, expected a receiver as in the config, in YAML or JSON',
    );
    expect((await run(url, ['receivers', 'add', file])).err).toContain(
      'found ${LATE_SECRET}, which is not set',
    );
    const added = await run(url, ['receivers', 'add', file], { LATE_SECRET: secret });
    expect(added).toEqual({
      code: 0,
      out: 'late gets the events of subjects that are tracked for it: intentwatch track --to late …',
      err: '',
    });
    const rotated = await run(url, ['receivers', 'rotate', 'late', '--overlap', '2h']);
    expect(rotated.out).toMatch(
      /^whsec_\S+\nlate signs with it from now on, and with those before it until \S+Z$/,
    );
    expect((await run(url, ['receivers', 'remove', 'late'])).out).toBe('late gets nothing more');
    expect(await run(url, ['receivers', 'remove', 'late'])).toMatchObject({ code: 1 });
  });
});

describe('listen and events --follow', () => {
  test('forward every event once, signed, through cuts of the stream and restarts of both ends', async () => {
    const { url, happen } = await delivering(await open.started(new Hook()));
    const relay = await open.started(new TcpProxy({ host: '127.0.0.1', port: Number(new URL(url).port) }));
    const way = relay.url.replace('redis:', 'http:');
    const local = await open.started(new Hook());
    const env = { XDG_STATE_HOME: await folder() };
    const { out: secret } = await run(way, ['listen', '--print-secret'], env);
    const args = ['listen', '--type', 'intent.*', '--forward-to', local.url];
    const first = await running(way, args, env);
    await first.line(/^forwarding the events/);
    const followed = await running(way, [
      'events',
      '--follow',
      '--since',
      '1h',
      '--type',
      'intent.*',
      '--json',
    ]);
    const made = await happen(2);
    await local.until((came) => came.length === 2);
    await first.line(/^ {4}delivered {2}204 No Content/);

    relay.cut();
    await first.line(/the connection was cut; trying again/);
    made.push(...(await happen(1)));
    await first.line(/connected again/);
    await local.until((came) => came.length === 3);
    await local.close();
    expect(await first.end('SIGINT')).toMatchObject({ code: 0 });

    // Events made while the listener was away arrive when it is back, and wait for their program.
    made.push(...(await happen(1)));
    const second = await running(way, args, env);
    await second.line(/connection refused; trying again until it answers/);
    expect(local.ids).toEqual(made.slice(0, 3).map(madeEventId));
    await second.end('SIGTERM');

    const other = await open.started(new Hook());
    const state = env.XDG_STATE_HOME;
    const moved = await running(
      way,
      [
        'listen',
        '--forward-to',
        other.url,
        '--type',
        'intent.*',
        '--since',
        '1h',
        '--state',
        `${state}/intentwatch/listen.json`,
      ],
      env,
    );
    await moved.line(/listen --print-secret --state '\/.+\/intentwatch\/listen\.json'\)/);
    await other.until((came) => came.length === 4);
    await moved.end('SIGTERM');
    expect(other.ids).toEqual(made.map(madeEventId));
    for (const { headers, body } of [...local.came, ...other.came]) {
      const signed = Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name, String(value)]),
      );
      expect(() => new Webhook(secret).verify(body, signed)).not.toThrow();
    }
    await followed.line(new RegExp(madeEventId(made[3] ?? { subject: '', sequence: 0 })));
    expect(followed.stdout.map((line) => z.object({ id: z.string() }).parse(JSON.parse(line)).id)).toEqual(
      made.map(madeEventId),
    );
    const stored = await readFile(join(env.XDG_STATE_HOME, 'intentwatch', 'listen.json'), 'utf8');
    expect(stored).toContain(secret);
    expect([...first.stdout, ...first.stderr].join('\n')).not.toContain(secret);
  });

  test('refuse to forward to another machine', async () => {
    const ran = await run('http://127.0.0.1:9464', ['listen', '--forward-to', 'https://example.com/'], {
      XDG_STATE_HOME: await folder(),
    });
    expect(ran).toMatchObject({ code: 1 });
    expect(ran.err).toContain('expected a URL of this machine');
  });
});

describe('the contents of Redis', () => {
  test('are read through the daemon where its URL is given, and from Redis by no other', async () => {
    const { stage, url } = await delivering(await open.started(new Hook()));
    const { redis, keys } = stage;
    expect(await run(url, ['quarantine'])).toEqual({ code: 0, out: 'nothing is quarantined', err: '' });
    await new Quarantine(redis, keys).add({ id: '1795397389162-0', fields: ['v', '1', 'kind', 'nonsense'] });
    expect((await run(url, ['quarantine'])).out).toMatch(/1795397389162-0 +2026-11-23T\S+ +nonsense/);
    expect(await run(url, ['quarantine', 'replay'])).toMatchObject({
      code: 0,
      out: '0 of 1 entries are back in the log',
    });
    const learned = new LearnedStore(redis, keys);
    const increments = [{ bin: 10, ended: 40, watchedSeconds: 80 }];
    await learned.add({ route: '8453:10', statistic: 'pending', increments });
    expect((await run(url, ['learned'])).out).toMatch(/^8453:10 +pending +40 /m);
    expect(JSON.parse((await run(url, ['learned', '--json'])).out)).toMatchObject({
      stages: [{ route: '8453:10', stage: 'pending', observations: 40 }],
    });
    expect((await run(url, ['learned', '--reset', '1:2'])).err).toContain('found nothing learned on 1:2');
    expect((await run(url, ['learned', '--reset'])).out).toBe('removed 1 entry');
    expect(await run(url, ['learned'], { INTENTWATCH_TOKEN: READ_TOKEN })).toMatchObject({
      code: 78,
      out: '',
    });
  });
});
