import { expect, test } from 'vitest';
import { reasonOfOutput, remedyOf } from '../../src/store/start-failure.ts';

/** The output of a redis-server 7.0 before the reason of its end, on a machine with the usual kernel settings. */
const ROUTINE = [
  'C # oO0OoO0OoO0Oo Redis is starting oO0OoO0OoO0Oo',
  'C # Redis version=7.0.15, bits=64, commit=00000000, modified=0, pid=4, just started',
  'C # Configuration loaded',
  'M # Server initialized',
  "M # WARNING Memory overcommit must be enabled! Without it, a background save or replication may fail under low memory condition. To fix this issue add 'vm.overcommit_memory = 1' to /etc/sysctl.conf and then reboot.",
];

function outputOf(...lines: string[]): string {
  return [...ROUTINE, ...lines]
    .map((line) => line.replace(/^([CM]) # /, '16993:$1 25 Nov 2026 01:26:56.022 # '))
    .join('\n');
}

const REPAIR =
  /^repair a copy of \/data\/appendonlydir with `redis-check-aof --fix appendonly\.aof\.manifest`/;

test.each<[string, string[], string, RegExp | null]>([
  [
    'zeros in the middle',
    [
      'M # Bad file format reading the append only file appendonly.aof.2.incr.aof: make a backup of your AOF file, then use ./redis-check-aof --fix <filename.manifest>',
    ],
    'Bad file format reading the append only file appendonly.aof.2.incr.aof: make a backup of your AOF file, then use ./redis-check-aof --fix <filename.manifest>',
    REPAIR,
  ],
  [
    'a part that is gone',
    ['M # Unable to obtain the AOF file appendonly.aof.2.base.rdb length. stat: No such file or directory'],
    'Unable to obtain the AOF file appendonly.aof.2.base.rdb length. stat: No such file or directory',
    REPAIR,
  ],
  [
    'a manifest that cannot be read',
    [
      'M # ',
      '*** FATAL AOF MANIFEST FILE ERROR ***',
      '',
      'M # Reading the manifest file, at line 1',
      '',
      "M # >>> 'hello'",
      '',
      'M # Invalid AOF manifest file format',
    ],
    "Reading the manifest file, at line 1 | >>> 'hello' | Invalid AOF manifest file format",
    REPAIR,
  ],
  [
    'a base that is cut',
    [
      'M # Internal error in RDB reading offset 0, function at rdb.c:2355 -> Stream listpacks loading failed.',
      '[offset 0] Checking RDB file appendonly.aof.2.base.rdb',
      '[info] 1 keys read',
    ],
    'Internal error in RDB reading offset 0, function at rdb.c:2355 -> Stream listpacks loading failed.',
    REPAIR,
  ],
  [
    'files of another user',
    [
      "M # Fatal error: can't open the append log file appendonly.aof.2.incr.aof for reading: Permission denied",
    ],
    "Fatal error: can't open the append log file appendonly.aof.2.incr.aof for reading: Permission denied",
    /^give all files in \/data to the user that runs the daemon/,
  ],
  [
    'a full disk',
    ['M # Write error writing append only file on disk: No space left on device'],
    'Write error writing append only file on disk: No space left on device',
    /^free space on the disk of \/data/,
  ],
  ['another reason', ['M # Out Of Memory allocating 3 bytes!'], 'Out Of Memory allocating 3 bytes!', null],
  [
    'a folder that is read-only',
    ["M # Can't open or create append-only dir appendonlydir: Read-only file system"],
    "Can't open or create append-only dir appendonlydir: Read-only file system",
    /^make the file system of \/data writable$/,
  ],
])('the reason of %s is named alone, with the remedy', (_, lines, reason, remedy) => {
  expect(reasonOfOutput(outputOf(...lines))).toBe(reason);
  expect(remedyOf(reason, '/data')).toEqual(remedy === null ? null : expect.stringMatching(remedy));
});

test('a program that no redis-server ran in is named by its last lines', () => {
  expect(reasonOfOutput("mkfifo: cannot create fifo '/data/redis-server.lock': Permission denied\n")).toBe(
    "mkfifo: cannot create fifo '/data/redis-server.lock': Permission denied",
  );
});
