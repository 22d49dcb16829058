import { spawn } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeClone } from './clone.ts';
import { consoleOf, filledIn, isTyped, notPrinted, type PageBlock } from './page-blocks.ts';
import { COMPILED, Program } from './program.ts';

/** A page, or an example beside it: its path, and its blocks in their order. */
export type Page = { path: string; blocks: readonly PageBlock[] };

/** Pages to run in turn, with Bash `before` the first and `after` the last block, and `steps` beside the blocks. */
export type PageRun = {
  pages: readonly Page[];
  before: string;
  files: Readonly<Record<string, string>>;
  env: Readonly<Record<string, string>>;
  /** Replacements for the reader's own texts, such as the address of his upstream. */
  replaced: Readonly<Record<string, string>>;
  /** The file into which he saves the first config of the page; null where he saves none. */
  saved: string | null;
  /** Bash for the steps that the page describes before a block with this text. */
  steps: Readonly<Record<string, string>>;
  after: string;
};

/** A namespace of network and processes of its own: all ports are free in it, and all its processes end with it. */
const UNSHARED = [
  'unshare',
  ...(process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']),
  ...['--net', '--pid', '--fork', '--kill-child', '--mount-proc'],
];

const ALONE = 'ip link set lo up && exec bash "$@"';

/** The missing right of this machine for such namespaces; null where it has it. */
export async function missingForPages(): Promise<string | null> {
  const program = await Program.run([...UNSHARED, 'sh', '-c', 'ip link set lo up']).catch(() => null);
  return program !== null && (await program.ending()).code === 0 ? null : 'the right to unshare networks';
}

/** Commands that go on until they are ended. A reader types the next block in another terminal. */
const STAYS =
  /^(?:\.\/)?(?:intentwatch (?:start|sandbox|listen --forward-to|events --follow)|npm start|curl -N)\b/;

/** The line by which a lasting command is ready. */
const READY: readonly [RegExp, string][] = [
  [/ start\b/, 'daemon.started|polling and delivering'],
  [/ sandbox\b/, 'a wallet:'],
];

const PRELUDE = `
set -E
# Node makes a pipe that it writes to non-blocking, for all that share it: they write into a file.
exec 3>&1 > page.log 2>&1
tail -n +1 -f page.log >&3 3>&- &
exec 3>&-
EXPECTED=0
ENDED=
trap 'iw_code=$?; case "$iw_code $BASH_COMMAND" in "1 grep"*) ;; "$EXPECTED "*) ENDED=$iw_code ;; *) printf "\\n@@FAILED %s %s\\n" "$iw_code" "$BASH_COMMAND" ;; esac' ERR
# 503 and exit code 75 demand another try.
curl() { case " $* " in *" -sf "*) command curl "$@" ;; *) command curl -sS --fail-with-body --retry 6 --retry-delay 2 "$@" ;; esac; }
intentwatch() {
  case "$1" in start|sandbox|listen) exec intentwatch "$@" ;; esac
  local tries=0 code
  until command intentwatch "$@"; do
    code=$?
    tries=$((tries + 1))
    echo "exit code $code: intentwatch $*"
    if [ $code != 75 ] || [ $EXPECTED = 75 ] || [ $tries -gt 5 ]; then return $code; fi
    sleep 2
  done
}
iw_ready() { local tries=0; until grep -qE "$2" "$1"; do tries=$((tries + 1)); if [ $tries -gt 1200 ]; then echo "@@FAILED 1 $1 never printed $2"; cat "$1"; return; fi; sleep 0.1; done; cat "$1"; }
iw_up() { until command curl -sf http://127.0.0.1:9464/readyz > /dev/null; do sleep 0.2; done; }
iw_end() { kill "$1" && wait "$1"; }
exec < <(yes)
`;

/** The commands that failed, and the lines that a page shows and no command printed. */
export type PageResult = { failed: string[]; missing: string[] };

/** Runs the blocks of pages in their order, in a clone of their own, and compares their output. */
export async function runPages(run: PageRun): Promise<PageResult> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-page-'));
  try {
    const clone = join(folder, 'clone');
    await mkdir(clone);
    await makeClone(clone);
    const bin = join(folder, 'bin');
    await mkdir(bin);
    await writeFile(join(bin, 'intentwatch'), `#!/bin/sh\nexec node ${clone}/bin/intentwatch.mjs "$@"\n`);
    await chmod(join(bin, 'intentwatch'), 0o755);
    for (const [name, text] of Object.entries(run.files)) await writeFile(join(clone, name), text);
    const file = join(folder, 'page.sh');
    await writeFile(file, scriptOf(run, clone));
    const env = { ...COMPILED, HOME: folder, PATH: `${bin}:${process.env.PATH}`, ...run.env };
    return await judge(run, { command: [...UNSHARED, 'sh', '-c', ALONE, 'sh', file], cwd: clone, env });
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

function scriptOf(run: PageRun, clone: string): string {
  const { pages, before, after } = run;
  const script = [`cd ${clone}`, PRELUDE, before];
  for (const [index, page] of pages.entries()) {
    // Processes that a page leaves running would disturb the next page. Those of the last page still have to print.
    const end = index < pages.length - 1 ? ['kill $(jobs -p) 2> /dev/null || :', 'wait || :'] : [];
    script.push('(', ...linesOf(page, run), ...end, ':', ')');
  }
  script.push("printf '\\n@@BLOCK after\\n'", after, "printf '\\n@@BLOCK end\\n'", 'sleep infinity');
  return `${script.join('\n')}\n`;
}

/** The lines of a page. A reader begins each page in a new shell. */
function linesOf({ path, blocks }: Page, run: PageRun): string[] {
  const { saved, steps } = run;
  const yaml = blocks.find(({ language }) => language === 'yaml');
  const script: string[] = [':'];
  for (const block of blocks) {
    if (block === yaml && saved !== null) {
      script.push(`cat > ${saved} <<'@@SAVED'\n${replaceIn(block.code, run)}\n@@SAVED`);
    }
    if (!isTyped(block) || block.exception !== null || filledIn(block).length > 0) continue;
    script.push(`printf '\\n@@BLOCK ${path}:${block.line}\\n'`);
    for (const [text, step] of Object.entries(steps)) if (block.code.includes(text)) script.push(step);
    const code = block.language === 'console' ? consoleOf(block.code).commands.join('\n') : block.code;
    for (const line of joined(replaceIn(code, run))) {
      const [, code = '0'] = /# ends with (\d+)$/.exec(line) ?? [];
      if (STAYS.test(line) && !/&\s*(?:#.*)?$/.test(line)) {
        const log = `stays-${block.line}.log`;
        const ready = READY.find(([command]) => command.test(line))?.[1] ?? '';
        script.push(`${line.replace(/ +#.*$/, '')} > ${log} 2>&1 &`);
        script.push(`iw_ready ${log} '${ready}'`);
        if (/ start\b/.test(line)) script.push('iw_up');
      } else if (code === '0') script.push(line);
      else {
        script.push(`EXPECTED=${code}; ENDED=`, line, 'EXPECTED=0');
        script.push(
          `[ "$ENDED" = ${code} ] || echo "@@FAILED expected ${code}: ${line.replaceAll('"', '')}"`,
        );
      }
    }
  }
  return script;
}

function replaceIn(code: string, { replaced }: PageRun): string {
  return Object.entries(replaced).reduce((text, [from, to]) => text.replaceAll(from, to), code);
}

/** The lines of a block; lines continued behind a backslash, or within quotes, are one. */
function joined(code: string): string[] {
  const whole: string[] = [];
  let open = '';
  for (const line of code.split('\n')) {
    const text = open === '' ? line : `${open}\n${line}`;
    const isOpen = text.endsWith('\\') || (text.match(/'/g) ?? []).length % 2 === 1;
    if (!isOpen) whole.push(text);
    open = isOpen ? text : '';
  }
  return open === '' ? whole : [...whole, open];
}

/** Ends a page when all blocks have run and all expected lines were printed, or no more lines can come. */
async function judge(
  { pages }: PageRun,
  {
    command: [program = '', ...args],
    cwd,
    env,
  }: { command: string[]; cwd: string; env: Record<string, string> },
): Promise<PageResult> {
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const printed = new Map<string, string[]>();
  const failed: string[] = [];
  let at = 'before';
  let rest = '';
  const { promise, resolve } = Promise.withResolvers<void>();
  const missing = (language?: string): string[] =>
    pages.flatMap(({ path, blocks }) =>
      blocks
        .filter((block) => language === undefined || block.language === language)
        .flatMap((block) => notYet(block, { at: `${path}:${block.line}`, printed })),
    );
  // Once all blocks have run, only programs in the background can still print.
  const awaited = (): string[] => missing('text');
  const timer = setTimeout(resolve, LONGEST_MS);
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = `${rest}${chunk}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const [, block] = /^@@BLOCK (\S+)$/.exec(line) ?? [];
      if (block !== undefined) at = block;
      else if (line.startsWith('@@FAILED')) failed.push(`${at}: ${line}`);
      else printed.set(at, [...(printed.get(at) ?? []), line]);
    }
    if (at === 'end' && (failed.length > 0 || awaited().length === 0)) resolve();
  });
  child.once('exit', (code) => {
    failed.push(`ended with ${code} in block ${at}`);
    resolve();
  });
  await promise;
  clearTimeout(timer);
  child.removeAllListeners('exit');
  child.kill('SIGKILL');
  if (at !== 'end') failed.push(`no end of block ${at}`);
  const unseen = missing();
  if (failed.length + unseen.length === 0) return { failed, missing: unseen };
  const shown = [...printed].flatMap(([block, lines]) => [
    `in block ${block}:`,
    ...lines.slice(-SHOWN_LINES),
  ]);
  return { failed: [...failed, ...shown], missing: unseen };
}

/** Most lines of each block's output that a failure shows. */
const SHOWN_LINES = 15;

/** Only an end, also on a machine that is many times slower than a quiet one. */
const LONGEST_MS = 850_000;

/** The lines that a block shows and that no command of it, or of a block before it, printed. */
function notYet(
  block: PageBlock,
  { at, printed }: { at: string; printed: ReadonlyMap<string, readonly string[]> },
): string[] {
  if (block.exception !== null) return [];
  const all = [...printed.values()].flat();
  if (block.language === 'text') return notPrinted(block.code.split('\n'), all);
  if (block.language !== 'console') return [];
  return notPrinted(consoleOf(block.code).printed, printed.get(at) ?? []);
}
