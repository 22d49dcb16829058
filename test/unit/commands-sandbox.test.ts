import { describe, expect, test } from 'vitest';
import { sandboxCommand } from '../../sandbox/command.ts';
import type { Fault } from '../../sandbox/faults/fault.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { interrupted } from '../../src/exit.ts';

type Flags = { fault: Fault[]; apiKey: string | false; wire: string; localIntents?: boolean };

/** The flags of the command, without the server. */
async function flagsOf(...args: string[]): Promise<Flags> {
  let found: Flags | null = null;
  const command = sandboxCommand(interrupted)
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
    .action((flags: Flags) => {
      found = flags;
    });
  await command.parseAsync(args, { from: 'user' });
  if (found === null) throw new Error('the command did not start');
  return found;
}

/** Its initial faults. */
const faultsOf = async (...args: string[]): Promise<Fault[]> => (await flagsOf(...args)).fault;

describe('the shape of a deployment', () => {
  test('is by default as recorded, with a key and without local intents', async () => {
    const { apiKey, wire, localIntents } = await flagsOf();
    expect([apiKey, wire, localIntents]).toEqual(['sandbox-key', '0.9.0', undefined]);
  });

  test('follows the flags', async () => {
    const flags = await flagsOf('--no-api-key', '--wire', 'strict', '--local-intents');
    expect(flags).toMatchObject({ apiKey: false, wire: 'strict', localIntents: true });
  });

  test('is refused where the wire format is unknown', async () => {
    await expect(flagsOf('--wire', '0.8.0')).rejects.toThrow(/Allowed choices are 0\.9\.0, strict/);
  });
});

const everywhere = { path: '/', rate: 1 };

describe('sandbox --fault', () => {
  test('that is omitted is no fault', async () => {
    expect(await faultsOf()).toEqual([]);
  });

  test.each<[string, object]>([
    ['html', { type: 'html' }],
    ['latency:ms=300', { type: 'latency', ms: 300, spreadMs: 0 }],
    ['latency:ms=300,spreadMs=50,rate=0.5', { type: 'latency', ms: 300, spreadMs: 50, rate: 0.5 }],
    ['error:code=internal-error,rate=0.1', { type: 'error', code: 'internal-error', rate: 0.1 }],
    [
      'error:code=rate-limit-exceeded,retryAfterSeconds=3,path=/v1/intents/status',
      { type: 'error', code: 'rate-limit-exceeded', retryAfterSeconds: 3, path: '/v1/intents/status' },
    ],
    ['bare-error:status=503', { type: 'bare-error', status: 503 }],
    ['clock-skew:skewSeconds=-90', { type: 'clock-skew', skewSeconds: -90 }],
    ['html:path=/v1/deposit-gateway/a:b=c', { type: 'html', path: '/v1/deposit-gateway/a:b=c' }],
    ['shuffled-pages:', { type: 'shuffled-pages' }],
  ])('%s is read', async (text, fault) => {
    expect(await faultsOf('--fault', text)).toEqual([{ ...everywhere, ...fault }]);
  });

  test('given often is several faults, in order', async () => {
    const found = await faultsOf('--fault', 'html:rate=0.1', '--seed', '3', '--fault=slow-body:ms=20');
    expect(found.map(({ type }) => type)).toEqual(['html', 'slow-body']);
  });

  test.each([
    ['', 'expected a type of fault, see docs/sandbox.md'],
    ['lightning', 'expected a type of fault, see docs/sandbox.md'],
    ['lightning:ms=3', 'expected a type of fault, see docs/sandbox.md'],
    ['latency', 'ms: found none, expected number'],
    ['latency:ms', 'ms: found none, expected number'],
    ['latency:ms=', 'ms: found none, expected number'],
    ['latency:ms=soon', 'ms: found "soon", expected number'],
    ['latency:ms=-1', 'ms: found -1, expected number to be >=0'],
    ['latency:ms=300:spreadMs=50', 'ms: '],
    ['latency:ms=300,often=1', 'found often, expected none of these'],
    ['latency:ms=300,ms=400', 'ms: found twice'],
    ['latency:ms=300,type=html', 'type: found twice'],
    ['html:rate=2', 'rate: '],
    ['html:path=v1', 'path: found "v1", expected a path that begins with /'],
    ['error:code=teapot', "expected a code of the interface's table"],
    ['error:code=__proto__', "expected a code of the interface's table"],
    ['error:__proto__=x,code=internal-error', 'found __proto__, expected none of these'],
    ['bare-error:status=200', 'status: '],
    ['lost-answer:status=404', 'status: '],
  ])('%j is refused: %s', async (text, message) => {
    const refused = faultsOf('--fault', text);
    await expect(refused).rejects.toThrow(message);
    await expect(refused).rejects.toThrow("error: option '--fault <type:key=value,…>' argument");
  });
});

test.each(['port', 'quotesPort', 'controlPort'] as const)('a %s that is in use is named', async (option) => {
  const first = new Sandbox({ transfersPerSecond: 0 });
  await first.start();
  try {
    const port = Number(new URL(first.url).port);
    const second = new Sandbox({ transfersPerSecond: 0, [option]: port });
    await expect(second.start()).rejects.toThrow(
      `sandbox option ${option}: found ${port}, which is in use on 127.0.0.1, expected a free port`,
    );
  } finally {
    await first.close();
  }
});
