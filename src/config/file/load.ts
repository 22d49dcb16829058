import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { z } from 'zod';
import { matchesEventType, nearestType } from '../../domain/events/event-types.ts';
import type { JsonObject } from '../../domain/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { codeOf } from '../../errors.ts';
import { whyEndless } from '../../files.ts';
import { type Config, digestOf, fingerprintOf, type ReceiverTls } from '../config.ts';
import { readTlsFiles } from '../fields/tls.ts';
import { buildConfig, checkConfig, checkRetention, configSchema, type ParsedConfig } from '../schema.ts';
import { readQuoteFiles } from '../sections/quote-files.ts';
import { isApiOn } from '../sections/server.ts';
import {
  ConfigError,
  type ConfigProblem,
  type Fault,
  type PlacedProblem,
  renderPath,
  replaceAt,
  valueAt,
} from './errors.ts';
import { createHiding, type FilePlace, type Hiding } from './expand.ts';
import { describeFound, findingsOf, pathOf, secretTexts } from './findings.ts';
import { type ConfigSource, readSource } from './source.ts';

/**
 * Reads a config file: YAML, then variables, the schema, the files it names, and checks between fields. `file` is relative to
 * the working directory. Throws a ConfigError that holds every problem at once. `onFile` is notified of the absolute path of
 * each file before it is read. `isAgain`: it was read before, so it cannot be a pipe any more.
 */
export async function loadConfig(
  file: string,
  env: NodeJS.ProcessEnv,
  { onFile = () => undefined, isAgain = false }: { onFile?: (path: string) => void; isAgain?: boolean } = {},
): Promise<Config> {
  const path = resolve(file);
  onFile(path);
  const text = await readConfigText(file, { isAgain });
  const source = readSource(text, { env, folder: dirname(path), onFile });
  if (source.tree === null) {
    throw new ConfigError(placed(file, { source, findings: [], hiding: createHiding(source.outside) }));
  }
  const parsed = parse(source.tree, source);
  const issues = parsed.success ? [] : parsed.error.issues;
  const hiding = createHiding([
    ...source.outside,
    ...secretTexts({ schema: configSchema, tree: source.tree }),
  ]);
  const context = { schema: configSchema, tree: source.tree, hiding };
  const { quotes, findings: unread } = await readQuoteFiles(source.tree, {
    folder: dirname(path),
    onFile,
  });
  const findings = [
    ...issues.flatMap((issue) => findingsOf(issue, context)),
    ...unread,
    ...(parsed.success ? checkRetention(parsed.data, source.tree) : []),
    ...checkConfig(source.tree, {
      isShown: (at, shown) => source.variablesAt(at).length === 0 && !hiding.hides(shown),
      quotes,
    }),
  ];
  if (!parsed.success || findings.length > 0 || source.problems.length > 0) {
    throw new ConfigError(placed(file, { source, findings, hiding }));
  }
  const { tls, findings: tlsFindings } = await readTls(parsed.data, { folder: dirname(path), onFile });
  if (tlsFindings.length > 0) throw new ConfigError(placed(file, { source, findings: tlsFindings, hiding }));
  const config = buildConfig(parsed.data, { tls, quotes });
  const doubts = [...unknownPatterns(parsed.data), ...absentApi(config.server)];
  const warnings = placed(file, { source, findings: doubts, hiding });
  return {
    ...config,
    file: path,
    digest: digestOf(config),
    fingerprint: fingerprintOf(text, config),
    dataDir: resolve(dirname(path), config.dataDir),
    warnings,
  };
}

/** Patterns that match no type of the catalogue. They are no problems, as the upstream may have types of its own. */
function unknownPatterns({ receivers }: ParsedConfig): Fault[] {
  return receivers.flatMap(({ events }, receiver) =>
    events.flatMap((pattern, index) => {
      if (matchesEventType(pattern)) return [];
      const nearest = nearestType(pattern);
      const like = nearest === null ? '' : `, like ${JSON.stringify(nearest)}`;
      const expected = `a pattern that matches a known event type${like}`;
      return [{ path: ['receivers', receiver, 'events', index], expected }];
    }),
  );
}

/** The host of a server that other machines can reach without a token: it has no API, which is easily missed. */
function absentApi(server: Config['server']): Fault[] {
  const expected = 'a loopback address, or a token beside it (server.token): without one the API is off';
  return isApiOn(server) ? [] : [{ path: ['server', 'host'], expected }];
}

async function readTls(
  { receivers }: ParsedConfig,
  place: FilePlace,
): Promise<{ tls: (ReceiverTls | null)[]; findings: Fault[] }> {
  const read = await Promise.all(
    receivers.map((item) =>
      item.type !== 'email' && item.tls !== undefined ? readTlsFiles(item.tls, place) : null,
    ),
  );
  const findings = read.flatMap((one, index) =>
    (one?.findings ?? []).map((finding) => ({ ...finding, path: ['receivers', index, ...finding.path] })),
  );
  return { tls: read.map((one) => one?.files ?? null), findings };
}

/** Reads the text of a config file. Throws a ConfigError that explains a missing one. Only the first read can be of a pipe. */
export async function readConfigText(
  file: string,
  { isAgain = false, expected = 'a config file (name another with --config)' } = {},
): Promise<string> {
  const refuse = (message: string) => new ConfigError([{ file, line: 1, column: 1, path: '', message }]);
  const endless = whyEndless(file, LIMITS.config.bytes);
  if (endless !== null && (isAgain || endless.isFile)) {
    throw refuse(`found ${endless.found}, expected ${endless.expected}`);
  }
  const bytes = await readFile(file).catch((error: unknown) => {
    switch (codeOf(error)) {
      case 'ENOENT':
        throw refuse(`found no such file, expected ${expected}`);
      case 'EISDIR':
        throw refuse(`found a folder, expected ${expected}`);
      default:
        throw refuse(
          `found a file that cannot be read (${codeOf(error) ?? 'unknown reason'}), expected ${expected}`,
        );
    }
  });
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw refuse('found bytes that are not UTF-8, expected a text file in UTF-8');
  }
  return text;
}

/** Without the code that zod generates for each object, which takes a tenth of a start and pays only where it runs often. */
const ONCE = { jitless: true };

/** Applies the schema. Where it needs a number or a flag, texts of variables that read as one are converted first. */
function parse(tree: JsonObject, source: ConfigSource): z.ZodSafeParseResult<ParsedConfig> {
  const first = configSchema.safeParse(tree, ONCE);
  if (first.success) return first;
  const coerced = first.error.issues.filter((issue) => {
    const path = pathOf(issue);
    const text = valueAt(tree, path);
    if (issue.code !== 'invalid_type' || typeof text !== 'string') return false;
    if (source.variablesAt(path).length === 0) return false;
    const value = coerce(text, issue.expected);
    if (value === null) return false;
    replaceAt(tree, { path, value });
    return true;
  });
  return coerced.length === 0 ? first : configSchema.safeParse(tree, ONCE);
}

function coerce(text: string, expected: string): number | boolean | null {
  if (expected === 'boolean') return text === 'true' ? true : text === 'false' ? false : null;
  if (expected !== 'number' && expected !== 'int') return null;
  return /^[+-]?\d+(\.\d+)?$/.test(text) ? Number(text) : null;
}

const MOST_PROBLEMS = 100;

/** The first problems with their lines, in the order of the file, and the number of the rest. */
function placed(
  file: string,
  { source, findings, hiding }: { source: ConfigSource; findings: Fault[]; hiding: Hiding },
): ConfigProblem[] {
  const unreadable = new Set(source.problems.map(({ path }) => renderPath(path)));
  const tree = source.tree ?? {};
  // A value that could not be read already has its problem.
  const readable = findings.filter(({ path }) => path.length === 0 || !unreadable.has(renderPath(path)));
  const describe = (finding: Fault): PlacedProblem => {
    const variables = source.variablesAt(finding.path);
    const found = describeFound(finding, { schema: configSchema, tree, variables, hiding });
    const path = finding.hidesKey === true ? finding.path.slice(0, -1) : finding.path;
    return { path, offset: offsetOf(finding), message: `found ${found}, expected ${finding.expected}` };
  };
  const offsetOf = (finding: Fault): number =>
    source.offsetOf(finding.path, { atKey: finding.atKey === true });
  const all = [
    ...source.problems.map((problem) => ({ offset: problem.offset, problem: () => problem })),
    ...readable.map((finding) => ({ offset: offsetOf(finding), problem: () => describe(finding) })),
  ].sort((a, b) => a.offset - b.offset);
  const reported = all.slice(0, MOST_PROBLEMS).map(({ problem }) => problem());
  const next = all[MOST_PROBLEMS];
  if (next !== undefined) {
    const message = `found ${all.length - MOST_PROBLEMS} more problems from here on, expected none`;
    reported.push({ path: [], offset: next.offset, message });
  }
  return reported.map(({ path, offset, message }) => ({
    file,
    ...source.positionOf(offset),
    path: hiding.renderPath(path),
    message,
  }));
}
